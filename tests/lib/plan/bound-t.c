/*
 * bound-t.c - the bound on packs is the optimum of the linear relaxation, and
 * plans of nnlshp and ennlshp come close to it.
 *
 * The relaxation is solved again here, with all columns listed and a plain
 * simplex method.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-alloc.h"
#include "lib-fixture.h"
#include "plan-naive.h"
#include "plan-relaxed.h"

#include <inttypes.h>
#include <math.h>

static double bound_of(const ps_histogram *h, uint32_t capacity,
                       uint32_t depth)
{
    double packs;
    ps_error err;

    assert_ok(ps_plan_bound(h, capacity, depth, &packs, &err), &err);
    return packs;
}

static void assert_close(double a, double b, double error)
{
    if (fabs(a - b) > error)
        fail_msg("%.9f is not %.9f", a, b);
}

/* ---------------------------------------------------------------------
 * The bound
 */

/* Compares with all columns listed; frees the histogram. */
static void try_bound(ps_histogram *h, uint32_t capacity, uint32_t depth)
{
    double known = relaxed_packs(h, capacity, depth);

    assert_close(bound_of(h, capacity, depth), known, 1e-9 * known);
    ps_histogram_free(h);
}

static void test_relaxation(void **state)
{
    const int cases = is_short() ? 400 : 1600;
    uint64_t random = 1;

    for (int i = 0; i < cases; i++) {
        uint32_t capacity = 1 + random_below(&random, 18);
        uint32_t depth = 1 + random_below(&random, 6);
        uint32_t lengths = 1 + random_below(&random, 6);
        uint32_t longest = 1 + random_below(&random, capacity);

        try_bound(random_histogram(&random, lengths, longest, 30), capacity,
                  depth);
    }
    /* More lengths, longer columns, no cap. */
    for (int i = 0; i < 60; i++) {
        uint32_t capacity = 20 + random_below(&random, 12);
        uint32_t depth = 4 + random_below(&random, 30);

        try_bound(random_histogram(&random, 12, capacity, 1000), capacity,
                  depth);
    }
}

/*
 * With one length, the bound is exact to the token although prices are per
 * unit: 17 of 205 fit in 3,686 tokens, but 18 would in 1,843 units of two.
 */
static void test_bound_of_equals(void **state)
{
    static const uint32_t lengths[] = {205, 217, 1117, 40, 3686, 1844};

    for (size_t i = 0; i < COUNT(lengths); i++)
        for (uint32_t depth = 2; depth <= 128; depth *= 2) {
            uint32_t fit = 3686 / lengths[i];
            double known = 60000.0 / (fit < depth ? fit : depth);
            ps_histogram *h = open_histogram();

            add_lengths(h, lengths[i], 60000);
            assert_close(bound_of(h, 3686, depth), known, 1e-9 * known);
            ps_histogram_free(h);
        }
}

/*
 * Many lengths just above a quarter: three fit a pack.  Rounding errors must
 * not accumulate to a higher bound.
 */
static void test_bound_of_many(void **state)
{
    const uint32_t capacity = PS_MAX_CAPACITY;
    const uint32_t n = 1398099;
    ps_histogram *h;
    double bound;

    skip_if_short();
    h = open_histogram();
    for (uint32_t i = 1; i <= n; i++)
        add_lengths(h, capacity / 4 + i, 10000);
    bound = bound_of(h, capacity, 4);
    assert_true(bound <= n / 3.0 * 10000);
    assert_true(bound >= n / 3.0 * 10000 * (1 - 1e-9));
    ps_histogram_free(h);
}

static void test_bound_refuses(void **state)
{
    static const uint32_t bad[][2] = {/* capacity, depth */
        {99, 3}, {512, 0}, {0, 3}, {PS_MAX_CAPACITY + 1, 3}};
    ps_histogram *h = open_histogram();
    double packs = 7;
    ps_error err;

    assert_ok(ps_plan_bound(h, 512, 3, &packs, &err), &err);
    assert_true(packs == 0);
    add_lengths(h, 100, 1);
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_result(ps_plan_bound(h, bad[i][0], bad[i][1], &packs, &err),
                      PS_ERR_ARGUMENT, &err);
    assert_true(packs == 0);
    ps_histogram_free(h);
}

/* Each allocation fails in turn: it is reported, and nothing leaks. */
static void test_bound_memory(void **state)
{
    uint64_t random = 3;
    ps_histogram *h = random_histogram(&random, 40, 128, 50);
    size_t blocks = alloc_so_far().blocks;
    ps_result r = PS_ERR_MEMORY;

    for (uint64_t nth = 1; r != PS_OK; nth++) {
        double packs;
        ps_error err;

        alloc_watch();
        alloc_fail(nth, false);
        r = ps_plan_bound(h, 128, 5, &packs, &err);
        alloc_fail(0, false);
        assert_int_equal(r, alloc_so_far().failed > 0 ? PS_ERR_MEMORY
                                                      : PS_OK);
        assert_int_equal(alloc_so_far().blocks, blocks);
    }
    ps_histogram_free(h);
}

/* ---------------------------------------------------------------------
 * Plans between bound and lpfhp
 */

/* Checks both algorithms against *bound and lpfhp; returns nnlshp's packs. */
static uint64_t try_plans(const ps_histogram *h, const ps_plan_options *o,
                          double *bound)
{
    uint64_t lpfhp = packs_of(h, PS_PLAN_LPFHP, o);
    uint64_t nnlshp = packs_of(h, PS_PLAN_NNLSHP, o);
    uint64_t ennlshp = packs_of(h, PS_PLAN_ENNLSHP, o);

    *bound = bound_of(h, o->capacity, o->depth);
    assert_true((double)nnlshp >= *bound);
    assert_true((double)ennlshp >= *bound);
    assert_true(nnlshp <= lpfhp);
    assert_true(ennlshp <= lpfhp);
    return nnlshp;
}

static void test_random_plans(void **state)
{
    const int cases = is_short() ? 300 : 1200;
    uint64_t random = 4;
    double packs = 0;
    double bounds = 0;

    for (int i = 0; i < cases; i++) {
        uint32_t capacity = 1 + random_below(&random, 200);
        ps_histogram *h = random_histogram(
            &random, 1 + random_below(&random, 40),
            1 + random_below(&random, capacity), i % 2 == 0 ? 5 : 5000);
        ps_plan_options o =
            plan_options(capacity, 1 + random_below(&random, 9));
        double bound;

        packs += (double)try_plans(h, &o, &bound);
        bounds += ceil(bound);
        ps_histogram_free(h);
    }
    print_message("# %.0f packs where %.0f are needed\n", packs, bounds);
    assert_true(packs < 1.0001 * bounds);
}

/* Too many lengths for the exact method: rounded to units, but still valid. */
static void test_many_lengths(void **state)
{
    static const uint32_t depths[] = {3, 6};
    uint64_t random = 5;

    for (size_t k = 0; k < (is_short() ? 1 : COUNT(depths)); k++) {
        uint32_t capacity = 131071; /* no whole number of units */
        ps_histogram *h = random_histogram(&random, 9000, capacity / 3, 20);
        ps_plan_options o = plan_options(capacity, depths[k]);
        uint64_t packs;
        double bound;

        add_lengths(h, capacity, 77);
        packs = try_plans(h, &o, &bound);
        print_message("# depth %" PRIu32 ": %" PRIu64
                      " packs, bound %.1f\n",
                      depths[k], packs, bound);
        assert_true((double)packs < 1.03 * bound);
        ps_histogram_free(h);
    }
}

/* Few lengths of many tokens: exact, but columns are searched in units. */
static void test_sparse_lengths(void **state)
{
    uint64_t random = 6;

    for (int i = 0; i < (is_short() ? 2 : 5); i++) {
        ps_histogram *h = random_histogram(&random, 60, 60000, 3000);
        ps_plan_options o = plan_options(131072, 4 + (uint32_t)i % 5);
        double bound;
        uint64_t packs = try_plans(h, &o, &bound);

        assert_true((double)packs < 1.01 * bound);
        ps_histogram_free(h);
    }
}

/*
 * Short lengths of little weight are left out of the fit.  With so many pairs
 * that fill a pack exactly, no pack has room for them later.
 */
static void test_weight(void **state)
{
    ps_histogram *h = open_histogram();
    ps_plan_options o = plan_options(100, 4);
    uint64_t heavy, light;

    add_lengths(h, 10, 30000);
    add_lengths(h, 45, 60000);
    add_lengths(h, 55, 1000);
    o.short_length = 20;
    o.short_weight = 1;
    heavy = packs_of(h, PS_PLAN_NNLSHP, &o);
    o.short_weight = 0.002;
    light = packs_of(h, PS_PLAN_NNLSHP, &o);
    print_message("# %" PRIu64 " packs, %" PRIu64 " with little weight\n",
                  heavy, light);
    assert_true((double)heavy - bound_of(h, 100, 4) < 3);
    assert_true(light > heavy);
    o.short_length = 9; /* none is that short */
    assert_int_equal(packs_of(h, PS_PLAN_NNLSHP, &o), heavy);
    ps_histogram_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relaxation),
        cmocka_unit_test(test_bound_of_equals),
        cmocka_unit_test(test_bound_of_many),
        cmocka_unit_test(test_bound_refuses),
        cmocka_unit_test(test_bound_memory),
        cmocka_unit_test(test_random_plans),
        cmocka_unit_test(test_many_lengths),
        cmocka_unit_test(test_sparse_lengths),
        cmocka_unit_test(test_weight),
    };

    return run_as_tap("plan-lp", tests, NULL);
}
