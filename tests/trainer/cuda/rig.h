/*
 * rig.h - a device under test: arrays in its memory, compared with numbers in
 * double.
 *
 * It uses only ops.h, so it works on a GPU and with tests/hostcuda.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RIG_H
#define RIG_H

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

#include "cuda/open.h"
#include "model/dropout.h"

typedef std::vector<double> numbers;

/* ---- TAP ---- */

struct tap {
    int count;
    int failed;
    uint64_t bits; /* digest of all numbers read back */
};

static tap tap_state;

__attribute__((format(printf, 2, 3)))
static inline void ok(bool good, const char *format, ...)
{
    va_list list;

    printf("%s %d - ", good ? "ok" : "not ok", ++tap_state.count);
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    printf("\n");
    fflush(stdout);
    tap_state.failed += !good;
}

/* The last line: bits are the same for any order of threads. */
static inline int done(void)
{
    printf("1..%d\n# bits %016llx\n", tap_state.count,
           (unsigned long long)tap_state.bits);
    return tap_state.failed != 0;
}

/*
 * True unless LONG is set: use small sizes.  Sanitizers, and all orders of
 * threads except one, would take too long with larger ones.
 */
static inline bool is_short(void)
{
    const char *const is_long = getenv("LONG");

    return is_long == NULL || *is_long == '\0';
}

/* hostcuda never frees destroyed events, so that it can detect their use. */
extern "C" __attribute__((used)) inline const char *
__lsan_default_suppressions(void)
{
    return "leak:cudaEventCreateWithFlags";
}

/* ---- The device ---- */

enum kind { VALUES, REALS, DOUBLES, INDEX };

struct rig {
    tr_device *d;
    const tr_ops *ops;
    const char *name;
    bool bf16;
    double near; /* tolerance of numbers about 1 */
};

static inline rig open_rig(tr_precision precision)
{
    static const char *const names[] = {"float", "tf32", "bf16"};
    char why[200] = "";
    rig r = {tr_cuda_open(0, precision, why, sizeof why), NULL,
             names[precision], precision == TR_BF16, 1e-5};

    if (r.d == NULL) {
        printf("Bail out! %s\n", why);
        exit(1);
    }
    r.ops = r.d->ops;
    if (sizeof(real) == sizeof(double))
        r.near = 1e-12;
    if (precision == TR_TF32)
        r.near = 2e-3;
    if (r.bf16)
        r.near = 4e-3; /* half of the last bit, rounded once */
    return r;
}

static inline size_t size_of(const rig &r, kind k)
{
    return k == VALUES ? r.d->value_size
           : k == REALS ? sizeof(real)
           : k == DOUBLES ? sizeof(double)
                          : sizeof(int32_t);
}

/* Rounded to the nearest bfloat16. */
static inline float as_bf16(float x)
{
    uint32_t u;

    memcpy(&u, &x, sizeof u);
    if (x == x)
        u += 0x7fff + (u >> 16 & 1);
    u &= 0xffff0000;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline void put(const rig &r, kind k, double x, char *to)
{
    const real as_real = (real)x;
    const int32_t as_index = (int32_t)x;
    const float rounded = as_bf16((float)x);

    if (k == VALUES && r.bf16)
        memcpy(to, (const char *)&rounded + 2, 2);
    else if (k == VALUES || k == REALS)
        memcpy(to, &as_real, sizeof as_real);
    else if (k == DOUBLES)
        memcpy(to, &x, sizeof x);
    else
        memcpy(to, &as_index, sizeof as_index);
}

static inline double get(const rig &r, kind k, const char *from)
{
    float rounded = 0;
    real as_real;
    double as_double;
    int32_t as_index;

    if (k == VALUES && r.bf16) {
        memcpy((char *)&rounded + 2, from, 2);
        return rounded;
    }
    if (k == VALUES || k == REALS) {
        memcpy(&as_real, from, sizeof as_real);
        return as_real;
    }
    if (k == DOUBLES) {
        memcpy(&as_double, from, sizeof as_double);
        return as_double;
    }
    memcpy(&as_index, from, sizeof as_index);
    return as_index;
}

/* An array on the device; NaN, or -1, unless it was set. */
struct array {
    const rig &r;
    kind k;
    size_t n;
    char *p;

    array(const rig &r_, kind k_, size_t n_)
        : r(r_), k(k_), n(n_),
          p((char *)r_.ops->alloc(r_.d, n_ * size_of(r_, k_)))
    {
        if (p == NULL) {
            printf("Bail out! no memory for %zu numbers\n", n);
            exit(1);
        }
        r.ops->fill(r.d, p, 0xff, n * size_of(r, k));
    }
    array(const rig &r_, kind k_, const numbers &x) : array(r_, k_, x.size())
    {
        set(x);
    }
    array(const array &) = delete;
    ~array()
    {
        r.ops->release(r.d, p);
    }
    void set(const numbers &x)
    {
        const size_t each = size_of(r, k);
        std::vector<char> bytes(n * each);

        for (size_t i = 0; i < n; i++)
            put(r, k, x[i], bytes.data() + i * each);
        r.ops->upload(r.d, p, bytes.data(), bytes.size());
    }
    numbers back() const
    {
        const size_t each = size_of(r, k);
        std::vector<char> bytes(n * each);
        numbers x(n);

        r.ops->download(r.d, bytes.data(), p, bytes.size());
        for (size_t i = 0; i < n; i++)
            x[i] = get(r, k, bytes.data() + i * each);
        for (char byte : bytes)
            tap_state.bits = (tap_state.bits ^ (unsigned char)byte)
                             * UINT64_C(0x100000001b3);
        return x;
    }
    operator void *() const { return p; }
    operator real *() const { return (real *)p; }
    operator const int32_t *() const { return (const int32_t *)p; }
};

/* ---- Numbers ---- */

/* This many random numbers between -by and by, as rounded by the device. */
static inline numbers draw(const rig &r, kind k, size_t n, uint64_t seed,
                           double by = 1)
{
    numbers x(n);
    char bytes[8];

    for (size_t i = 0; i < n; i++) {
        x[i] = ((double)(tr_counter_rng(seed, i) >> 11) / (1ll << 52) - 1) * by;
        put(r, k, x[i], bytes);
        x[i] = get(r, k, bytes);
    }
    return x;
}

/* Stride of logits, in values. */
static inline size_t row_stride(const rig &r, size_t columns)
{
    const size_t multiple = TR_ROW_BYTES / r.d->value_size;

    return (columns + multiple - 1) / multiple * multiple;
}

/* Rows of x, `stride` apart, with NaN between them. */
static inline numbers spread(const numbers &x, size_t columns, size_t stride)
{
    numbers y(x.size() / columns * stride, NAN);

    for (size_t i = 0; i < x.size(); i++)
        y[i / columns * stride + i % columns] = x[i];
    return y;
}

/* The reverse; a row is NaN if anything was written after its end. */
static inline numbers narrow(const numbers &y, size_t columns, size_t stride)
{
    numbers x(y.size() / stride * columns);

    for (size_t i = 0; i < x.size(); i++)
        x[i] = y[i / columns * stride + i % columns];
    for (size_t i = 0; i < y.size(); i++)
        if (i % stride >= columns && y[i] == y[i])
            x[i / stride * columns] = NAN;
    return x;
}

static inline std::vector<int32_t> draw_index(size_t n, uint64_t seed,
                                              uint32_t below)
{
    std::vector<int32_t> x(n);

    for (size_t i = 0; i < n; i++)
        x[i] = (int32_t)(tr_counter_rng(seed, i) % below);
    return x;
}

static inline numbers as_numbers(const std::vector<int32_t> &x)
{
    return numbers(x.begin(), x.end());
}

/* Places of rows, in a much larger batch. */
static inline std::vector<int32_t> draw_places(size_t rows, uint64_t seed)
{
    return draw_index(rows, seed, INT32_MAX);
}

/* True if they differ by at most `near` times the largest of them. */
static inline bool same(const numbers &got, const numbers &right, double near)
{
    double largest = 1;

    for (double x : right)
        largest = fabs(x) > largest ? fabs(x) : largest;
    for (size_t i = 0; i < right.size(); i++)
        if (!(fabs(got[i] - right[i]) <= near * largest)) {
            printf("# number %zu of %zu is %.9g, not %.9g\n", i, right.size(),
                   got[i], right[i]);
            return false;
        }
    return got.size() == right.size();
}

/*
 * The same for values rounded once: each to half of its last bit.  `first` is
 * the part of a sum that may have been rounded before the rest was added.
 */
static inline bool rounded(const rig &r, const numbers &got,
                           const numbers &right, const numbers &first = {})
{
    double largest = 1;

    if (!r.bf16)
        return same(got, right, r.near);
    for (double x : right)
        largest = fabs(x) > largest ? fabs(x) : largest;
    for (size_t i = 0; i < right.size(); i++) {
        const double before = i < first.size() ? fabs(first[i]) : 0;

        if (!(fabs(got[i] - right[i])
              <= r.near * (fabs(right[i]) + before) + 1e-5 * largest)) {
            printf("# number %zu is %.9g, not %.9g\n", i, got[i], right[i]);
            return false;
        }
    }
    return got.size() == right.size();
}

/* ---- Dropout, as on the CPU ---- */

/* By places of rows: on the host, or as read by the device. */
static inline tr_dropout dropout_by(double rate, const int32_t *place)
{
    tr_dropout d = tr_dropout_at(rate, 77);

    d.place = place;
    return d;
}

static inline double dropped(const tr_dropout &d, uint32_t site, size_t row,
                             uint32_t column, double x)
{
    const tr_dropout_key key = tr_dropout_at_row(&d, site, row);

    if (!d.threshold)
        return x;
    return tr_dropout_keeps(key, column, d.threshold) ? x * d.scale : 0;
}

#endif /* RIG_H */
