/*
 * plan-t.c - every plan of every algorithm is valid, and each algorithm follows
 * its rules.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-alloc.h"
#include "lib-fixture.h"
#include "plan-naive.h"

#include <math.h>
#include <stdlib.h>

static const ps_algorithm algorithms[] = {
    PS_PLAN_NONE,  PS_PLAN_GREEDY, PS_PLAN_SORTED,
    PS_PLAN_FFD,   PS_PLAN_BFD,    PS_PLAN_SPFHP,
    PS_PLAN_LPFHP, PS_PLAN_NNLSHP, PS_PLAN_ENNLSHP,
};

static ps_plan *make_plan(const ps_histogram *h, ps_algorithm algorithm,
                          const ps_plan_options *o)
{
    ps_plan *plan;
    ps_error err;

    assert_ok(ps_plan_make(&plan, h, algorithm, o, &err), &err);
    return plan;
}

/* ---------------------------------------------------------------------
 * Guarantees
 */

/*
 * A plan's own numbers agree with its strategies.  It has at least the minimum
 * number of packs, and at most one per sequence.
 */
static void try_plan(const ps_histogram *h, ps_algorithm algorithm,
                     const ps_plan_options *o)
{
    bool rows = algorithm == PS_PLAN_SORTED;
    ps_plan *plan = make_plan(h, algorithm, o);
    uint64_t packs = ps_plan_packs(plan);
    uint64_t sequences = ps_histogram_sequences(h);
    uint64_t sum = 0;
    uint32_t deepest = 0;
    ps_error err;

    assert_ok(ps_plan_check(plan, h, o, &err), &err);
    for (size_t i = 0; i < ps_plan_strategies(plan); i++) {
        const uint32_t *lengths;
        uint32_t n;

        sum += ps_plan_strategy(plan, i, &lengths, &n);
        deepest = n > deepest ? n : deepest;
    }
    assert_int_equal(ps_plan_max_depth(plan), deepest);
    assert_true(rows ? packs <= sum : packs == sum);
    assert_true(packs >= ps_lower_bound(ps_histogram_tokens(h),
                                        o->capacity));
    assert_true(packs <= sequences);
    assert_true(rows || packs >= sequences / o->depth);
    ps_plan_free(plan);
}

/* A kind of histogram, and how often each algorithm is tried on it. */
typedef struct kind {
    uint32_t capacity; /* at most */
    uint32_t lengths;  /* at most */
    uint64_t count;    /* at most, of a length */
    uint32_t rounds;
} kind;

static uint32_t random_depth(uint64_t *random, uint32_t capacity)
{
    switch (random_below(random, 4)) {
    case 0:
        return UINT32_MAX;
    case 1:
        return 1 + random_below(random, capacity);
    default:
        return 1 + random_below(random, 8);
    }
}

static void try_kind(const kind *k, uint64_t seed)
{
    uint64_t random = seed;

    for (uint32_t i = 0; i < k->rounds; i++) {
        uint32_t capacity = 1 + random_below(&random, k->capacity);
        uint32_t longest = 1 + random_below(&random, capacity);
        uint32_t lengths = 1 + random_below(&random, k->lengths);
        ps_histogram *h =
            random_histogram(&random, lengths, longest, k->count);
        ps_plan_options o =
            plan_options(capacity, random_depth(&random, capacity));

        o.distribute = random_below(&random, 3) > 0;
        o.batch = 1 + random_below(&random, 40);
        for (size_t a = 0; a < COUNT(algorithms); a++)
            try_plan(h, algorithms[a], &o);
        ps_histogram_free(h);
    }
}

static void test_kinds(void **state)
{
    static const kind kinds[] = {
        {40, 12, 6, 3000},                    /* small */
        {512, 300, 1000000, 60},              /* plentiful */
        {600, 60, INT64_MAX / 600 / 60, 60},  /* huge counts */
        {131072, 60, 3, 12},                  /* sparse */
    };

    for (size_t i = 0; i < COUNT(kinds); i += is_short() ? 3 : 1)
        try_kind(&kinds[i], i + 1);
}

static void test_empty(void **state)
{
    ps_histogram *h = histogram_of("");
    ps_plan_options o = plan_options(512, 3);

    for (size_t a = 0; a < COUNT(algorithms); a++) {
        ps_plan *plan = make_plan(h, algorithms[a], &o);
        ps_error err;

        assert_int_equal(ps_plan_strategies(plan), 0);
        assert_int_equal(ps_plan_packs(plan), 0);
        assert_int_equal(ps_plan_max_depth(plan), 0);
        assert_ok(ps_plan_check(plan, h, &o, &err), &err);
        ps_plan_free(plan);
    }
    ps_histogram_free(h);
}

/* ---------------------------------------------------------------------
 * Rules
 */

static void compare_with_naive(const ps_histogram *h, naive_plan *naive,
                               const ps_plan_options *o)
{
    ps_plan *plan = make_plan(h, PS_PLAN_FFD, o);

    naive_decreasing(naive, h, o->capacity, o->depth, false);
    assert_same_packs(plan, naive);
    ps_plan_free(plan);
    plan = make_plan(h, PS_PLAN_BFD, o);
    naive_decreasing(naive, h, o->capacity, o->depth, true);
    assert_same_packs(plan, naive);
    ps_plan_free(plan);
    plan = make_plan(h, PS_PLAN_SPFHP, o);
    naive_packs_first(naive, h, o->capacity, o->depth, false, false);
    assert_same_packs(plan, naive);
    assert_int_equal(ps_plan_strategies(plan), naive->n_groups);
    ps_plan_free(plan);
    plan = make_plan(h, PS_PLAN_LPFHP, o);
    naive_packs_first(naive, h, o->capacity, o->depth, true, o->distribute);
    assert_same_packs(plan, naive);
    assert_int_equal(ps_plan_strategies(plan), naive->n_groups);
    ps_plan_free(plan);
}

static void test_against_naive(void **state)
{
    naive_plan *naive = must_alloc(sizeof *naive);
    uint64_t random = 5;

    for (unsigned i = 0; i < 6000; i++) {
        uint32_t capacity = 1 + random_below(&random, 60);
        uint32_t longest = 1 + random_below(&random, capacity);
        uint32_t lengths = 1 + random_below(&random, 16);
        uint32_t depth = random_depth(&random, 6);
        ps_plan_options o = plan_options(capacity, depth);
        ps_histogram *h =
            random_histogram(&random, lengths, longest,
                             NAIVE_MAX / lengths);

        o.distribute = random_below(&random, 2) == 0;
        compare_with_naive(h, naive, &o);
        ps_histogram_free(h);
    }
    free(naive);
}

/* Small cases worked out by hand. */
typedef struct by_hand {
    const char *histogram;
    uint32_t capacity;
    uint32_t depth;
    ps_algorithm algorithm;
    bool distribute;
    uint32_t batch;
    uint64_t packs;
} by_hand;

static const by_hand cases[] = {
    {"4:3", 10, UINT32_MAX, PS_PLAN_NONE, true, 1, 3},
    {"4:3", 10, UINT32_MAX, PS_PLAN_GREEDY, true, 1, 2},
    {"4:3", 10, 1, PS_PLAN_GREEDY, true, 1, 3},
    {"1:100000", 10, 4, PS_PLAN_GREEDY, true, 1, 25000},
    /* Without repeats, a length opens a pack for each of its sequences. */
    {"4:3", 10, UINT32_MAX, PS_PLAN_SPFHP, true, 1, 3},
    {"4:3", 10, UINT32_MAX, PS_PLAN_LPFHP, false, 1, 3},
    {"4:3", 10, UINT32_MAX, PS_PLAN_LPFHP, true, 1, 2},
    {"4:3", 10, UINT32_MAX, PS_PLAN_FFD, true, 1, 2},
    /* 6+4, 5+3 at the cap, 2. */
    {"6:1 5:1 4:1 3:1 2:1", 10, 2, PS_PLAN_BFD, true, 1, 3},
    /* 5+3+2, 6+3. */
    {"6:1 5:1 3:2 2:1", 10, UINT32_MAX, PS_PLAN_SPFHP, true, 1, 2},
    /* 9 9, 9 9, 5 5: 46 tokens. */
    {"9:4 5:1 1:1", 10, 1, PS_PLAN_SORTED, true, 2, 5},
    /* Six times 9. */
    {"9:1 1:5", 10, 1, PS_PLAN_SORTED, true, 8, 6},
};

static void test_by_hand(void **state)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        const by_hand *c = &cases[i];
        ps_plan_options o = plan_options(c->capacity, c->depth);
        ps_histogram *h = histogram_of(c->histogram);
        ps_plan *plan;

        o.distribute = c->distribute;
        o.batch = c->batch;
        plan = make_plan(h, c->algorithm, &o);
        assert_int_equal(ps_plan_packs(plan), c->packs);
        ps_plan_free(plan);
        ps_histogram_free(h);
    }
}

/* ---------------------------------------------------------------------
 * Refusals
 */

static void assert_refused(const ps_histogram *h, ps_algorithm algorithm,
                           const ps_plan_options *o, const char *text)
{
    ps_plan *plan = NULL;
    ps_error err;

    assert_result(ps_plan_make(&plan, h, algorithm, o, &err),
                  PS_ERR_ARGUMENT, &err);
    assert_string_equal(err.text, text);
    assert_null(plan);
}

static void test_refused(void **state)
{
    ps_histogram *h = histogram_of("512:1 7:1");
    ps_plan_options o = plan_options(511, 3);

    assert_refused(h, PS_PLAN_FFD, &o,
                   "plan: length 512 exceeds the capacity, 511");
    o.capacity = 0;
    assert_refused(h, PS_PLAN_FFD, &o,
                   "plan: the capacity must be 1 to 16777216");
    o.capacity = PS_MAX_CAPACITY + 1;
    assert_refused(h, PS_PLAN_FFD, &o,
                   "plan: the capacity must be 1 to 16777216");
    o = plan_options(512, 0);
    assert_refused(h, PS_PLAN_FFD, &o,
                   "plan: the depth must be at least 1");
    o = plan_options(512, 3);
    assert_refused(h, (ps_algorithm)(PS_PLAN_ENNLSHP + 1), &o,
                   "plan: unknown algorithm");
    o.batch = 0;
    assert_refused(h, PS_PLAN_SORTED, &o,
                   "plan: the batch must be at least 1");
    o.short_weight = 0;
    assert_refused(h, PS_PLAN_NNLSHP, &o,
                   "plan: the weight of short lengths must be greater than 0");
    o.short_weight = (double)INFINITY;
    assert_refused(h, PS_PLAN_NNLSHP, &o,
                   "plan: the weight of short lengths must be greater than 0");
    o.short_weight = (double)NAN;
    assert_refused(h, PS_PLAN_ENNLSHP, &o,
                   "plan: the weight of short lengths must be greater than 0");
    ps_histogram_free(h);
}

/*
 * Allocations fail one by one: each failure is reported, and nothing leaks.  If
 * there are many, ever fewer of the later ones fail.
 */
static void starve(ps_histogram *h, const ps_plan_options *o)
{
    size_t blocks = alloc_so_far().blocks;

    for (size_t a = 0; a < COUNT(algorithms); a++) {
        ps_result r = PS_ERR_MEMORY;

        for (uint64_t nth = 1; r != PS_OK; nth += 1 + nth / 100) {
            ps_plan *plan;
            ps_error err;

            alloc_watch();
            alloc_fail(nth, false);
            r = ps_plan_make(&plan, h, algorithms[a], o, &err);
            alloc_fail(0, false);
            if (r == PS_OK)
                assert_int_equal(alloc_so_far().failed, 0);
            else
                assert_int_equal(r, PS_ERR_MEMORY);
            ps_plan_free(plan);
            assert_int_equal(alloc_so_far().blocks, blocks);
        }
    }
    ps_histogram_free(h);
}

static void test_memory(void **state)
{
    uint64_t random = 8;
    ps_plan_options o = plan_options(128, UINT32_MAX);

    starve(random_histogram(&random, 40, 128, 50), &o);
    o = plan_options(512, 3);
    starve(random_histogram(&random, is_short() ? 50 : 250, 512, 9), &o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_against_naive),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_memory),
    };

    return run_as_tap("plan", tests, NULL);
}
