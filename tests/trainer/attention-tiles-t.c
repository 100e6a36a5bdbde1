/*
 * attention-tiles-t.c - attention that keeps no scores, compared with loops in
 * double: causal, with windows, and with heads that share keys.
 *
 * Built twice: with float and with double.
 *
 * SPDX-License-Identifier: MIT
 */
#include "toy.h"

#include <stdlib.h>
#include <string.h>

#include <omp.h>

#include "cpu/device.h"

#ifdef TR_DOUBLE
#define NEAR 1e-12
#else
#define NEAR 1e-5
#endif

/* Attention and its inputs. */
typedef struct problem {
    tr_attend a;
    tr_batch batch;
    int32_t cu[32];
    real *qkv;
    real *d_out;
} problem;

/* Results of a device, or of the loops. */
typedef struct answer {
    real *out, *d_qkv;
} answer;

static size_t stride_of(const problem *p)
{
    return (p->a.heads + 2 * p->a.kv_heads) * p->a.width;
}

static size_t hidden_of(const problem *p)
{
    return p->a.heads * p->a.width;
}

/* Spans of these lengths; the list ends with -1. */
static problem problem_of(tr_attend a, const int *lengths)
{
    problem p = {.a = a};

    for (; lengths[p.batch.n_spans] >= 0; p.batch.n_spans++) {
        const uint32_t n = (uint32_t)lengths[p.batch.n_spans];

        p.cu[p.batch.n_spans + 1] = (int32_t)(p.batch.n_rows += n);
        if (n > p.batch.max_span)
            p.batch.max_span = n;
    }
    p.qkv = toy_numbers(1, p.batch.n_rows * stride_of(&p));
    p.d_out = toy_numbers(2, p.batch.n_rows * hidden_of(&p));
    for (size_t i = 0; i < p.batch.n_rows * stride_of(&p); i++)
        p.qkv[i] *= 3;
    return p;
}

static void free_problem(problem *p)
{
    free(p->qkv);
    free(p->d_out);
}

static void free_answer(answer *x)
{
    free(x->out);
    free(x->d_qkv);
}

/* ---- The device ---- */

static void *on_device(const void *from, size_t bytes)
{
    tr_device *const d = toy_device();
    void *const to = d->ops->alloc(d, bytes + 1);

    assert_non_null(to);
    d->ops->fill(d, to, 0xff, bytes);
    if (from)
        d->ops->upload(d, to, from, bytes);
    return to;
}

static real *from_device(void *from, size_t bytes)
{
    tr_device *const d = toy_device();
    real *const to = malloc(bytes + 1);

    assert_non_null(to);
    d->ops->download(d, to, from, bytes);
    d->ops->release(d, from);
    return to;
}

static answer compute(problem *p)
{
    tr_device *const d = toy_device();
    const size_t out_size = p->batch.n_rows * hidden_of(p) * sizeof(real);
    const size_t qkv_size = p->batch.n_rows * stride_of(p) * sizeof(real);
    void *const qkv = on_device(p->qkv, qkv_size);
    void *const d_out = on_device(p->d_out, out_size);
    void *const out = on_device(NULL, out_size);
    void *const d_qkv = on_device(NULL, qkv_size);
    tr_attend a = p->a;

    p->batch.cu = p->cu;
    a.batch = &p->batch;
    a.kept = on_device(NULL, d->ops->attention_kept(d, &a));
    a.scratch = on_device(NULL, d->ops->attention_scratch(d, &a));
    a.batch = d->ops->stage(d, &p->batch);
    d->ops->attention_forward(d, &a, qkv, out);
    d->ops->attention_backward(d, &a, qkv, out, d_out, d_qkv);
    (void)toy_finish();
    d->ops->release(d, a.kept);
    d->ops->release(d, a.scratch);
    d->ops->release(d, qkv);
    d->ops->release(d, d_out);
    return (answer){from_device(out, out_size), from_device(d_qkv, qkv_size)};
}

/* ---- The loops ---- */

static bool sees(const tr_attend *a, size_t row, size_t other)
{
    const size_t apart = row > other ? row - other : other - row;

    return (!a->causal || other <= row)
           && (a->window == 0 || apart < a->window);
}

/* The offset of a head's query (0), key (1) or value (2). */
static size_t at(const problem *p, size_t row, size_t which, size_t head)
{
    const size_t shared = head / (p->a.heads / p->a.kv_heads);
    const size_t before[] = {head, p->a.heads + shared,
                             p->a.heads + p->a.kv_heads + shared};

    return row * stride_of(p) + before[which] * p->a.width;
}

static double dot(const problem *p, const real *x, const real *y)
{
    double sum = 0;

    for (size_t i = 0; i < p->a.width; i++)
        sum += (double)x[i] * (double)y[i];
    return sum;
}

/* One row and head: adds to the output and to the gradients. */
static void naive_row(const problem *p, size_t first, size_t end, size_t row,
                      size_t head, double *out, double *d_qkv)
{
    const double scale = 1 / sqrt((double)p->a.width);
    const size_t w = p->a.width;
    const size_t o = row * hidden_of(p) + head * w;
    double *const weight = calloc(end, sizeof *weight);
    double all = 0;
    double delta = 0;

    assert_non_null(weight);
    for (size_t r = first; r < end; r++)
        if (sees(&p->a, row, r))
            all += weight[r] = exp(scale
                                   * dot(p, p->qkv + at(p, row, 0, head),
                                         p->qkv + at(p, r, 1, head)));
    for (size_t r = first; r < end; r++) {
        weight[r] /= all;
        for (size_t i = 0; i < w; i++) {
            out[o + i] += weight[r] * (double)p->qkv[at(p, r, 2, head) + i];
            d_qkv[at(p, r, 2, head) + i] += weight[r] * (double)p->d_out[o + i];
        }
        delta += weight[r]
                 * dot(p, p->d_out + o, p->qkv + at(p, r, 2, head));
    }
    for (size_t r = first; r < end; r++) {
        const double d_p = dot(p, p->d_out + o, p->qkv + at(p, r, 2, head));
        const double d_s = scale * weight[r] * (d_p - delta);

        for (size_t i = 0; i < w; i++) {
            d_qkv[at(p, row, 0, head) + i] +=
                d_s * (double)p->qkv[at(p, r, 1, head) + i];
            d_qkv[at(p, r, 1, head) + i] +=
                d_s * (double)p->qkv[at(p, row, 0, head) + i];
        }
    }
    free(weight);
}

static void assert_near(const char *what, size_t n, const real *x,
                        const double *right)
{
    double most = 1;

    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs(right[i]));
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)x[i] - right[i]) <= NEAR * most))
            fail_msg("%s: number %zu is %g instead of %g", what, i,
                     (double)x[i], right[i]);
}

static void compare(tr_attend a, const int *lengths)
{
    problem p = problem_of(a, lengths);
    const size_t n = p.batch.n_rows;
    double *const out = calloc(n * hidden_of(&p) + 1, sizeof *out);
    double *const d_qkv = calloc(n * stride_of(&p) + 1, sizeof *d_qkv);
    answer x = compute(&p);

    assert_true(out && d_qkv);
    for (size_t s = 0; s < p.batch.n_spans; s++)
        for (size_t row = (size_t)p.cu[s]; row < (size_t)p.cu[s + 1]; row++)
            for (size_t h = 0; h < a.heads; h++)
                naive_row(&p, (size_t)p.cu[s], (size_t)p.cu[s + 1], row, h,
                          out, d_qkv);
    assert_near("output", n * hidden_of(&p), x.out, out);
    assert_near("gradient", n * stride_of(&p), x.d_qkv, d_qkv);
    free(out);
    free(d_qkv);
    free_answer(&x);
    free_problem(&p);
}

/* ---- Tests ---- */

static const int mixed[] = {3, 1, 0, 64, 2, 65, 31, 0, 100, 33, -1};
static const int longer[] = {5, 700, 0, -1}; /* several tiles of keys */
static const int none[] = {0, 0, -1};
static const int nothing[] = {-1};

static tr_attend attend(size_t heads, size_t kv_heads, size_t width,
                        bool causal, size_t window)
{
    return (tr_attend){.heads = heads,
                       .kv_heads = kv_heads,
                       .width = width,
                       .causal = causal,
                       .window = window};
}

/* Windows of 1 and of more than a span. */
static void test_masks(void **state)
{
    static const size_t windows[] = {0, 1, 2, 30, 64, 65, 1000, SIZE_MAX};

    for (size_t i = 0; i < COUNT(windows); i++) {
        compare(attend(4, 2, 8, false, windows[i]), mixed);
        compare(attend(4, 2, 8, true, windows[i]), mixed);
    }
}

static void test_groups(void **state)
{
    static const size_t heads[][2] = {{1, 1}, {4, 4}, {4, 1}, {6, 2},
                                      {3, 1}, {9, 3}, {130, 1}};
    static const int short_ones[] = {1, 70, 3, -1};

    for (size_t i = 0; i < COUNT(heads); i++) {
        compare(attend(heads[i][0], heads[i][1], 6, true, 0), short_ones);
        compare(attend(heads[i][0], heads[i][1], 2, false, 7), short_ones);
    }
    compare(attend(2, 2, 64, false, 0), short_ones);
}

static void test_tiles(void **state)
{
    compare(attend(2, 1, 4, true, 0), longer);
    compare(attend(2, 1, 4, false, 0), longer);
    compare(attend(2, 1, 4, true, 550), longer);
    compare(attend(1, 1, 4, false, 300), longer);
}

static void test_empty(void **state)
{
    compare(attend(2, 1, 4, true, 0), none);
    compare(attend(2, 1, 4, true, 0), nothing);
}

/* Later keys score higher, so the sums over earlier tiles are scaled down;
 * and lower, so that they are not. */
static void test_growing(void **state)
{
    for (int sign = -1; sign <= 1; sign += 2) {
        problem p = problem_of(attend(1, 1, 2, false, 0), longer);
        answer x;

        for (size_t i = 0; i < p.batch.n_rows; i++) {
            p.qkv[6 * i] = p.qkv[6 * i + 1] = 1;
            p.qkv[6 * i + 2] = p.qkv[6 * i + 3] = (real)(sign * (int)i);
            p.qkv[6 * i + 4] = p.qkv[6 * i + 5] = (real)i;
        }
        x = compute(&p);
        /* All weight is on the last key or the first. */
        for (size_t i = 5; i < 705; i++)
            assert_true(fabs((double)x.out[2 * i]
                             - (sign > 0 ? 704 - 0.3212 : 5.3212))
                        < 1e-3);
        free_answer(&x);
        free_problem(&p);
    }
}

static bool is_same(const answer *x, const answer *y, const problem *p,
                    size_t first, size_t end)
{
    const size_t o = hidden_of(p), i = stride_of(p);

    return memcmp(x->out + first * o, y->out + first * o,
                  (end - first) * o * sizeof(real)) == 0
           && memcmp(x->d_qkv + first * i, y->d_qkv + first * i,
                     (end - first) * i * sizeof(real)) == 0;
}

/* Results are bit-identical for any number of threads. */
static void test_threads(void **state)
{
    const int before = omp_get_max_threads();
    problem p = problem_of(attend(6, 3, 8, true, 40), mixed);
    answer first;

    omp_set_num_threads(1);
    first = compute(&p);
    for (int n = 2; n <= 3; n++) {
        answer x;

        omp_set_num_threads(n);
        x = compute(&p);
        assert_true(is_same(&first, &x, &p, 0, p.batch.n_rows));
        free_answer(&x);
    }
    omp_set_num_threads(before);
    free_answer(&first);
    free_problem(&p);
}

/* A span does not read other spans' rows, which are NaN here. */
static void test_spans(void **state)
{
    problem p = problem_of(attend(4, 2, 8, false, 50), mixed);
    answer x = compute(&p);

    for (size_t s = 0; s < p.batch.n_spans; s++) {
        problem q = problem_of(p.a, mixed);
        const size_t begin = (size_t)p.cu[s], end = (size_t)p.cu[s + 1];
        answer y;

        for (size_t r = 0; r < q.batch.n_rows; r++) {
            if (r >= begin && r < end)
                continue;
            memset(q.qkv + r * stride_of(&q), 0xff,
                   stride_of(&q) * sizeof(real));
            memset(q.d_out + r * hidden_of(&q), 0xff,
                   hidden_of(&q) * sizeof(real));
        }
        y = compute(&q);
        assert_true(is_same(&x, &y, &p, begin, end));
        free_answer(&y);
        free_problem(&q);
    }
    free_answer(&x);
    free_problem(&p);
}

/* Rows that a row may not see do not change its output at all. */
static void test_hidden_rows(void **state)
{
    problem p = problem_of(attend(2, 1, 8, true, 20), mixed);
    const size_t first = (size_t)p.cu[8] + 40; /* in the span of 100 */
    const size_t o = hidden_of(&p);
    answer x = compute(&p);
    answer y;

    for (size_t i = 0; i < stride_of(&p); i++)
        p.qkv[first * stride_of(&p) + i] += 1;
    y = compute(&p);
    for (size_t r = 0; r < p.batch.n_rows; r++)
        assert_true((memcmp(x.out + r * o, y.out + r * o, o * sizeof(real))
                     != 0)
                    == (r >= first && r < first + 20));
    free_answer(&x);
    free_answer(&y);
    free_problem(&p);
}

#ifdef TR_DOUBLE
/* The sum of out times d_out. */
static double loss_of(problem *p)
{
    answer x = compute(p);
    double sum = 0;

    for (size_t i = 0; i < p->batch.n_rows * hidden_of(p); i++)
        sum += x.out[i] * p->d_out[i];
    free_answer(&x);
    return sum;
}

/* Gradients are those of finite differences. */
static void test_differences(void **state)
{
    static const int lengths[] = {2, 40, 1, -1};
    problem p = problem_of(attend(4, 2, 4, true, 9), lengths);
    answer x = compute(&p);

    for (size_t i = 0; i < p.batch.n_rows * stride_of(&p); i += 7) {
        const double before = p.qkv[i], h = 1e-5;
        double slope;

        p.qkv[i] = before + h;
        slope = loss_of(&p);
        p.qkv[i] = before - h;
        slope = (slope - loss_of(&p)) / (2 * h);
        p.qkv[i] = before;
        if (!(fabs(slope - x.d_qkv[i]) <= 1e-8 * (1 + fabs(slope))))
            fail_msg("gradient %zu is %g instead of %g", i, x.d_qkv[i],
                     slope);
    }
    free_answer(&x);
    free_problem(&p);
}
#endif

/* Dropout, which it lacks, is reported. */
static void test_dropout(void **state)
{
    tr_device *const d = tr_cpu_open();
    const tr_batch batch = {.cu = (int32_t[]){0}};
    tr_attend a = attend(2, 1, 4, true, 0);
    tr_results results;
    const char *why = NULL;

    assert_non_null(d);
    a.batch = &batch;
    a.dropout.threshold = 1;
    assert_true(d->ops->attention_scratch(d, &a) < SIZE_MAX);
    d->ops->attention_forward(d, &a, NULL, NULL);
    assert_false(d->ops->finish(d, &results, &why));
    assert_string_equal(why, "this attention has no dropout");
    tr_device_close(d);
}

/* Memory is linear in the length of a span, and not lost to overflow. */
static void test_sizes(void **state)
{
    tr_device *const d = toy_device();
    const tr_batch batch = {.n_rows = 1 << 20, .max_span = 1 << 20};
    tr_attend a = attend(16, 4, 64, true, 0);

    a.batch = &batch;
    assert_int_equal(d->ops->attention_kept(d, &a),
                     (size_t)16 * (1 << 20) * sizeof(real));
    assert_true(d->ops->attention_scratch(d, &a)
                < ((size_t)omp_get_max_threads() << 21));
    a.heads = a.kv_heads = SIZE_MAX / (1 << 20);
    assert_true(d->ops->attention_kept(d, &a) == SIZE_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_growing),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_hidden_rows),
#ifdef TR_DOUBLE
        cmocka_unit_test(test_differences),
#endif
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_sizes),
    };

    return run_as_tap("attention tiles", tests, toy_setup);
}
