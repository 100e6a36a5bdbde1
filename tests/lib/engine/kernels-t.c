/*
 * kernels-t.c - every variant of the search, the knapsack row and the sum of
 * products, against a naive loop.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <string.h>

#include "engine/kernels.h"

#define BEFORE (PS_SEARCH_GROUP - 1)
#define NONE (-(INT32_C(1) << 28))

/* Two arrays, with only as many bytes around them as may be read. */
typedef struct runs {
    uint32_t n;
    int32_t *a;
    int32_t *b;
} runs;

static runs open_runs(uint32_t n)
{
    size_t size = (size_t)n + BEFORE;
    runs r = {.n = n};

    r.a = must_alloc(size * sizeof *r.a);
    r.b = must_alloc(size * sizeof *r.b);
    for (size_t i = 0; i < size; i++) {
        r.a[i] = NONE;
        r.b[i] = NONE + (int32_t)i;
    }
    r.a += BEFORE;
    r.b += BEFORE;
    return r;
}

static void close_runs(runs *r)
{
    free(r->a - BEFORE);
    free(r->b - BEFORE);
}

/* Numbers below `range`: the smaller the range, the more ties. */
static void fill(runs *r, uint32_t range, uint64_t *random)
{
    for (uint32_t i = 0; i < r->n; i++) {
        bool gone = random_below(random, 8) == 0;

        r->a[i] = gone ? NONE : (int32_t)random_below(random, range);
        r->b[i] = (int32_t)random_below(random, range);
    }
}

static ps_max_sum look(const runs *r)
{
    ps_max_sum f = {INT32_MIN, 0};

    for (uint32_t i = 0; i < r->n; i++)
        if (r->a[i] + r->b[i] >= f.sum)
            f = (ps_max_sum){r->a[i] + r->b[i], i};
    return f;
}

static void try_min(ps_search search, const runs *r, int32_t min)
{
    ps_max_sum wanted = look(r);
    ps_max_sum f = search(r->a, r->b, r->n, min);

    if (wanted.sum < min) {
        assert_true(f.sum < min);
        return;
    }
    assert_int_equal(f.sum, wanted.sum);
    assert_int_equal(f.index, wanted.index);
}

static void compare(ps_search search, const runs *r)
{
    int32_t max = look(r).sum;

    try_min(search, r, NONE / 2);
    if (r->n == 0 || max < NONE / 2)
        return;
    try_min(search, r, max);
    try_min(search, r, max + 1);
}

/* The greatest sum at each position in turn, alone and tied with the first. */
static void try_places(ps_search search, uint32_t n)
{
    runs r = open_runs(n);

    for (uint32_t i = 0; i < n; i++) {
        r.a[0] = r.a[i] = 3;
        r.b[0] = r.b[i] = 4;
        compare(search, &r);
        r.a[i] = r.b[i] = NONE;
    }
    close_runs(&r);
}

static void try_random(ps_search search, uint32_t n, uint64_t *random)
{
    static const uint32_t ranges[] = {1, 3, 50, UINT32_C(1) << 20};
    runs r = open_runs(n);

    compare(search, &r);
    for (size_t i = 0; i < COUNT(ranges); i++) {
        fill(&r, ranges[i], random);
        compare(search, &r);
    }
    close_runs(&r);
}

/* Sizes around whole groups, and around the blocks of the search. */
static void try_variant(ps_search search)
{
    static const uint32_t sizes[] = {1000, 1008, 1023, 1024, 1025,
                                     1040, 2047, 2048, 2049, 5000};
    uint64_t random = 17;

    for (uint32_t n = 0; n <= 100; n++) {
        try_places(search, n);
        for (int i = 0; i < 5; i++)
            try_random(search, n, &random);
    }
    for (size_t i = 0; i < COUNT(sizes); i++) {
        try_places(search, sizes[i]);
        for (int k = 0; k < 20; k++)
            try_random(search, sizes[i], &random);
    }
}

/* ---- Rows of a knapsack ---- */

static int32_t naive_value(const runs *r, const int32_t *from, uint32_t c)
{
    int32_t max = 0;

    for (uint32_t room = 1; room <= c; room++)
        for (uint32_t i = 1; i <= room; i++)
            if (r->a[i] + from[r->n - 1 - (room - i)] > max)
                max = r->a[i] + from[r->n - 1 - (room - i)];
    return max;
}

/* Computes a row for any number of sequences, or for one more, from `a`. */
static void try_row(const ps_kernels *kernels, uint32_t units,
                    uint32_t range, uint64_t *random)
{
    runs r = open_runs(units + 1);
    runs to = open_runs(units + 1);
    uint32_t i = 1 + random_below(random, units);
    int32_t best = (int32_t)random_below(random, range);

    fill(&r, range, random);
    r.a[0] = NONE;
    kernels->any(r.a, r.b, units);
    for (uint32_t c = 0; c <= units; c++)
        assert_int_equal(r.b[units - c], naive_value(&r, r.b, c));
    fill(&to, range, random);
    memcpy(to.a, to.b, (units + 1) * sizeof *to.a);
    kernels->more(best, i, r.b, to.b, units);
    /* The old value, or `best` of length i plus the other row. */
    for (uint32_t c = 0; c <= units; c++) {
        int32_t sum = c < i ? NONE : best + r.b[units - (c - i)];
        int32_t was = to.a[units - c];

        assert_int_equal(to.b[units - c], sum > was ? sum : was);
    }
    close_runs(&r);
    close_runs(&to);
}

static void try_rows(const ps_kernels *kernels)
{
    static const uint32_t ranges[] = {1, 3, 50, UINT32_C(1) << 20};
    uint64_t random = 19;

    for (uint32_t units = 1; units <= 70; units++)
        for (size_t i = 0; i < COUNT(ranges); i++)
            try_row(kernels, units, ranges[i], &random);
    try_row(kernels, 256, 1000, &random);
}

/*
 * Sums of products, and multiples added to other numbers.  Results that fit a
 * double are exact; all variants round the others alike.
 */
static void try_products(const ps_kernels *kernels)
{
    bool works;
    const ps_kernels *plain = ps_kernels_variant(0, &works);
    double a[70];
    double b[70];
    double to[70];
    uint64_t random = 4;

    for (uint32_t n = 0; n <= 70; n++) {
        double sum = 0;

        for (uint32_t i = 0; i < n; i++) {
            a[i] = random_below(&random, 1000);
            b[i] = to[i] = random_below(&random, 1000);
            sum += a[i] * b[i];
        }
        assert_true(kernels->dot(a, b, n) == sum);
        kernels->add_times(3, a, to, n);
        for (uint32_t i = 0; i < n; i++)
            assert_true(to[i] == b[i] + 3 * a[i]);
        for (uint32_t i = 0; i < n; i++)
            a[i] = b[i] / (1 + random_below(&random, 1000));
        assert_true(kernels->dot(a, b, n) == plain->dot(a, b, n));
        memcpy(to, a, sizeof to);
        kernels->add_times(1 / 3.0, b, a, n);
        plain->add_times(1 / 3.0, b, to, n);
        assert_memory_equal(a, to, n * sizeof *a);
    }
}

/* Prints the variants that this machine cannot run; the first always works. */
static void test_variants(void **state)
{
    const ps_kernels *kernels;
    bool works = false;
    unsigned number = 0;

    while ((kernels = ps_kernels_variant(number, &works)) != NULL) {
        assert_non_null(kernels->name);
        assert_true(works || number > 0);
        if (works) {
            try_variant(kernels->search);
            try_rows(kernels);
            try_products(kernels);
        } else {
            print_message("# %s does not work here\n", kernels->name);
        }
        number++;
    }
    assert_true(number > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variants),
    };

    return run_as_tap("search", tests, NULL);
}
