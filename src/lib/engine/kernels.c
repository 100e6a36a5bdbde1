/*
 * kernels.c - the inner loops of the engine, for several instruction sets.
 *
 * The loops have no branches, so compilers vectorize them.  They are compiled
 * once for each instruction set.  The end of the file checks which of these the
 * machine supports.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine/kernels.h"

/*
 * Groups per block.  The index is sought only in the block with the maximum,
 * which saves more than comparing the maxima of small blocks costs.
 */
#define BLOCK_GROUPS 8

#if defined(__GNUC__)
#define IN_LINE static inline __attribute__((always_inline))
#else
#define IN_LINE static inline
#endif

/*
 * GCC vectorizes these loops only at -O3.  Clang would interleave several
 * vectors and process the rest one by one, which does not pay for such short
 * arrays.
 */
#if defined(__clang__)
#define VECTORS
#define ONE_VECTOR _Pragma("clang loop interleave_count(1)")
#elif defined(__GNUC__)
#define VECTORS __attribute__((optimize("O3")))
#define ONE_VECTOR
#else
#define VECTORS
#define ONE_VECTOR
#endif

IN_LINE int32_t greatest(const int32_t *a, const int32_t *b, uint32_t groups)
{
    int32_t max = INT32_MIN;

    ONE_VECTOR
    for (uint32_t i = 0; i < groups * PS_SEARCH_GROUP; i++) {
        int32_t sum = a[i] + b[i];

        max = sum > max ? sum : max;
    }
    return max;
}

IN_LINE uint32_t last_of(const int32_t *a, const int32_t *b, uint32_t groups,
                         int32_t sum)
{
    int32_t last = 0;

    ONE_VECTOR
    for (uint32_t i = 0; i < groups * PS_SEARCH_GROUP; i++) {
        int32_t at = a[i] + b[i] == sum ? (int32_t)i : 0;

        last = at > last ? at : last;
    }
    return (uint32_t)last;
}

/*
 * Groups are aligned to the end of the arrays, so the first can begin before
 * them.  Finds the maximum of each block, then the index in the last block that
 * has the overall maximum.
 */
IN_LINE ps_max_sum search(const int32_t *a, const int32_t *b, uint32_t n,
                          int32_t min)
{
    uint32_t groups = (n + PS_SEARCH_GROUP - 1) / PS_SEARCH_GROUP;
    uint32_t before = groups * PS_SEARCH_GROUP - n;
    uint32_t best = 0; /* first index of the best block */
    uint32_t size = 0; /* number of groups in it */
    ps_max_sum max = {min - 1, 0};

    a -= before;
    b -= before;
    for (uint32_t g = 0; g < groups; g += BLOCK_GROUPS) {
        uint32_t i = g * PS_SEARCH_GROUP;
        uint32_t left = groups - g;
        uint32_t block = left < BLOCK_GROUPS ? left : BLOCK_GROUPS;
        int32_t sum = greatest(a + i, b + i, block);

        if (sum >= min) {
            min = max.sum = sum;
            best = i;
            size = block;
        }
    }
    if (size > 0)
        max.index = best - before + last_of(a + best, b + best, size, max.sum);
    return max;
}

/* Updates n capacities; `from` has the values of the remaining capacities. */
IN_LINE void add_one(int32_t best, const int32_t *restrict from,
                     int32_t *restrict to, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        int32_t sum = best + from[i];

        to[i] = sum > to[i] ? sum : to[i];
    }
}

/* In ascending order, because each value depends on smaller capacities. */
IN_LINE void fill_any(const int32_t *best, int32_t *to, uint32_t units)
{
    to[units] = 0;
    for (uint32_t c = 1; c <= units; c++)
        to[units - c] = best[c];
    for (uint32_t c = 1; c <= units; c++) {
        int32_t *at = to + (units - c);
        uint32_t n = c < units - c ? c : units - c;

        if (at[0] > at[1])
            add_one(at[0], to + (units - n), at - n, n);
        else
            at[0] = at[1];
    }
}

/* Compilers vectorize this only if the index is as wide as a pointer. */
IN_LINE double dot(const double *a, const double *b, size_t n)
{
    double sum[PS_SEARCH_GROUP] = {0};
    size_t i = 0;

    for (; i + PS_SEARCH_GROUP <= n; i += PS_SEARCH_GROUP)
        for (size_t k = 0; k < PS_SEARCH_GROUP; k++)
            sum[k] += a[i + k] * b[i + k];
    for (size_t k = 0; i + k < n; k++)
        sum[k] += a[i + k] * b[i + k];
    for (size_t half = PS_SEARCH_GROUP / 2; half > 0; half /= 2)
        for (size_t k = 0; k < half; k++)
            sum[k] += sum[k + half];
    return sum[0];
}

IN_LINE void add_times(double factor, const double *restrict from,
                       double *restrict to, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        to[i] += factor * from[i];
}

/*
 * Defines the loops of one variant.  `target` is a function attribute, or
 * empty.
 */
#define VARIANT(set, target)                                                \
    VECTORS target                                                          \
    static ps_max_sum search_##set(const int32_t *a, const int32_t *b,      \
                                   uint32_t n, int32_t min)                 \
    {                                                                       \
        return search(a, b, n, min);                                        \
    }                                                                       \
    VECTORS target                                                          \
    static void any_##set(const int32_t *best, int32_t *to, uint32_t units) \
    {                                                                       \
        fill_any(best, to, units);                                          \
    }                                                                       \
    VECTORS target                                                          \
    static void more_##set(int32_t best, uint32_t i, const int32_t *from,   \
                           int32_t *to, uint32_t units)                     \
    {                                                                       \
        add_one(best, from + i, to, units + 1 - i);                         \
    }                                                                       \
    VECTORS target                                                          \
    static double dot_##set(const double *a, const double *b, uint32_t n)   \
    {                                                                       \
        return dot(a, b, n);                                                \
    }                                                                       \
    VECTORS target                                                          \
    static void times_##set(double factor, const double *from, double *to,  \
                            uint32_t n)                                     \
    {                                                                       \
        add_times(factor, from, to, n);                                     \
    }

#define KERNELS(set)                                                        \
    {#set, search_##set, any_##set, more_##set, dot_##set, times_##set}

VARIANT(plain, )

/* ---- Variants, fastest last ---- */

#if defined(__x86_64__) && defined(__GNUC__)

VARIANT(avx2, __attribute__((target("avx2"))))
VARIANT(avx512, __attribute__((target("avx512f"))))

static const ps_kernels variants[] = {KERNELS(plain), KERNELS(avx2),
                                      KERNELS(avx512)};

static bool works(unsigned number)
{
    switch (number) {
    case 0:
        return true;
    case 1:
        return __builtin_cpu_supports("avx2");
    default:
        return __builtin_cpu_supports("avx512f");
    }
}

#else

static const ps_kernels variants[] = {KERNELS(plain)};

static bool works(unsigned number)
{
    return number == 0;
}

#endif

const ps_kernels *ps_kernels_variant(unsigned number, bool *can)
{
    if (number >= sizeof variants / sizeof variants[0])
        return NULL;
    *can = works(number);
    return &variants[number];
}

const ps_kernels *ps_kernels_best(void)
{
    unsigned number = sizeof variants / sizeof variants[0] - 1;

    while (!works(number))
        number--;
    return &variants[number];
}
