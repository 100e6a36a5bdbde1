/*
 * search.c - the greatest sum of two runs of numbers, side by side.
 *
 * Loops without a branch, which compilers turn into vector instructions;
 * each variant is the same code, compiled for other ones.  What a variant
 * needs of the machine is asked for in one place, at the end.
 *
 * SPDX-License-Identifier: MIT
 */

#include "search.h"

/* The place of the greatest sum is looked for in one block alone. */
#define BLOCK_GROUPS 64

#if defined(__GNUC__)
#define IN_LINE static inline __attribute__((always_inline))
#else
#define IN_LINE static inline
#endif

/*
 * GCC makes vectors of such loops at its highest level only.  Clang would
 * rather take several at a time, which leaves a rest to be done singly where
 * there is none; runs are too short for that to pay.
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
    int32_t most = INT32_MIN;

    ONE_VECTOR
    for (uint32_t i = 0; i < groups * PS_SEARCH_GROUP; i++) {
        int32_t sum = a[i] + b[i];

        most = sum > most ? sum : most;
    }
    return most;
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

/* Groups of the block that begins with one of them. */
IN_LINE uint32_t block_groups(uint32_t groups, uint32_t from)
{
    uint32_t left = groups - from;

    return left < BLOCK_GROUPS ? left : BLOCK_GROUPS;
}

/* Groups are whole at the end; the first one begins before the runs. */
IN_LINE ps_found search(const int32_t *a, const int32_t *b, uint32_t n,
                        int32_t least)
{
    uint32_t groups = (n + PS_SEARCH_GROUP - 1) / PS_SEARCH_GROUP;
    uint32_t before = groups * PS_SEARCH_GROUP - n;
    uint32_t block = groups;
    ps_found found = {least - 1, 0};

    a -= before;
    b -= before;
    for (uint32_t g = 0; g < groups; g += BLOCK_GROUPS) {
        uint32_t i = g * PS_SEARCH_GROUP;
        int32_t most = greatest(a + i, b + i, block_groups(groups, g));

        if (most >= least) {
            least = found.sum = most;
            block = g;
        }
    }
    if (block < groups) {
        uint32_t i = block * PS_SEARCH_GROUP;

        found.at = i - before + last_of(a + i, b + i,
                                        block_groups(groups, block),
                                        found.sum);
    }
    return found;
}

/* As in search, the first group begins before the runs. */
IN_LINE void fill_row(const int32_t *best, const int32_t *from, int32_t *to,
                      uint32_t units)
{
    int32_t most = 0;

    to[units] = 0;
    for (uint32_t c = 1; c <= units; c++) {
        uint32_t groups = (c + PS_SEARCH_GROUP - 1) / PS_SEARCH_GROUP;
        uint32_t before = groups * PS_SEARCH_GROUP - c;
        int32_t sum = greatest(best + 1 - before,
                               from + (units - c) + 1 - before, groups);

        most = sum > most ? sum : most;
        to[units - c] = most;
    }
}

VECTORS
static ps_found search_plain(const int32_t *a, const int32_t *b, uint32_t n,
                             int32_t least)
{
    return search(a, b, n, least);
}

VECTORS
static void row_plain(const int32_t *best, const int32_t *from, int32_t *to,
                      uint32_t units)
{
    fill_row(best, from, to, units);
}

/* ---- Variants, the fastest last ---- */

typedef struct variant {
    const char *name;
    ps_search search;
    ps_knapsack_row row;
} variant;

#if defined(__x86_64__) && defined(__GNUC__)

VECTORS __attribute__((target("avx2")))
static ps_found search_avx2(const int32_t *a, const int32_t *b, uint32_t n,
                            int32_t least)
{
    return search(a, b, n, least);
}

VECTORS __attribute__((target("avx2")))
static void row_avx2(const int32_t *best, const int32_t *from, int32_t *to,
                     uint32_t units)
{
    fill_row(best, from, to, units);
}

VECTORS __attribute__((target("avx512f")))
static void row_avx512(const int32_t *best, const int32_t *from, int32_t *to,
                       uint32_t units)
{
    fill_row(best, from, to, units);
}

VECTORS __attribute__((target("avx512f")))
static ps_found search_avx512(const int32_t *a, const int32_t *b, uint32_t n,
                              int32_t least)
{
    return search(a, b, n, least);
}

static const variant variants[] = {
    {"plain", search_plain, row_plain},
    {"avx2", search_avx2, row_avx2},
    {"avx512", search_avx512, row_avx512},
};

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

static const variant variants[] = {{"plain", search_plain, row_plain}};

static bool works(unsigned number)
{
    return number == 0;
}

#endif

ps_search ps_search_variant(unsigned number, const char **name, bool *can)
{
    if (number >= sizeof variants / sizeof variants[0])
        return NULL;
    *name = variants[number].name;
    *can = works(number);
    return variants[number].search;
}

ps_knapsack_row ps_knapsack_row_variant(unsigned number)
{
    return variants[number].row;
}

static unsigned best_variant(void)
{
    unsigned number = sizeof variants / sizeof variants[0] - 1;

    while (!works(number))
        number--;
    return number;
}

ps_search ps_search_best(void)
{
    return variants[best_variant()].search;
}

ps_knapsack_row ps_knapsack_row_best(void)
{
    return variants[best_variant()].row;
}
