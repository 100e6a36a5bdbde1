/*
 * deal-t.c - every rank gets the same number of items, and sums as even as
 * possible.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-alloc.h"
#include "lib-fixture.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ITEMS 16384

/* An assignment of these costs, and its reported sums. */
typedef struct result {
    uint32_t ranks[MAX_ITEMS];
    uint64_t max;
    uint64_t bound;
} result;

/*
 * Fails the test unless each rank has `per_rank` items, with a positive cost
 * among them if there are enough, ranks are numbered by their first items,
 * and the greatest sum is the reported one.
 */
static void check(const result *r, const uint64_t *costs, uint32_t ranks,
                  uint32_t per_rank)
{
    uint64_t *sums = calloc(ranks, sizeof *sums);
    uint32_t *counts = calloc(ranks, sizeof *counts);
    uint64_t max = 0;
    uint32_t known = 0;    /* ranks of the items so far */
    uint32_t positive = 0; /* items that cost something */

    assert_non_null(sums);
    assert_non_null(counts);
    for (uint32_t i = 0; i < ranks * per_rank; i++) {
        assert_true(r->ranks[i] < ranks && r->ranks[i] <= known);
        known += r->ranks[i] == known;
        positive += costs[i] > 0;
        sums[r->ranks[i]] += costs[i];
        counts[r->ranks[i]]++;
    }
    for (uint32_t i = 0; i < ranks; i++) {
        assert_int_equal(counts[i], per_rank);
        assert_true(sums[i] > 0 || positive < ranks);
        max = sums[i] > max ? sums[i] : max;
    }
    assert_int_equal(r->max, max);
    assert_true(r->bound <= max);
    free(sums);
    free(counts);
}

static void deal_with(ps_deal *deal, const uint64_t *costs, result *r)
{
    ps_error err;

    assert_ok(ps_deal_make(deal, costs, r->ranks, &err), &err);
    r->max = ps_deal_max(deal);
    r->bound = ps_deal_bound(deal);
}

static void deal_once(const uint64_t *costs, uint32_t ranks,
                      uint32_t per_rank, result *r)
{
    ps_deal *deal;
    ps_error err;

    assert_ok(ps_deal_open(&deal, ranks, per_rank, &err), &err);
    deal_with(deal, costs, r);
    check(r, costs, ranks, per_rank);
    ps_deal_free(deal);
}

/* ---- Against every assignment ---- */

typedef struct search {
    const uint64_t *costs;
    uint32_t ranks;
    uint32_t per_rank;
    uint64_t sums[4];
    uint32_t counts[4];
    uint64_t best;
} search;

static void try_all(search *s, uint32_t item)
{
    uint64_t max = 0;

    for (uint32_t i = 0; i < s->ranks; i++)
        max = s->sums[i] > max ? s->sums[i] : max;
    if (max >= s->best)
        return;
    if (item == s->ranks * s->per_rank) {
        s->best = max;
        return;
    }
    for (uint32_t i = 0; i < s->ranks; i++) {
        if (s->counts[i] == s->per_rank)
            continue;
        s->sums[i] += s->costs[item];
        s->counts[i]++;
        try_all(s, item + 1);
        s->sums[i] -= s->costs[item];
        s->counts[i]--;
        if (s->counts[i] == 0)
            break; /* empty ones are alike */
    }
}

/*
 * Twelve items or fewer, of few values or many: no assignment is below its
 * bound, most are optimal, and none is far from the optimum.
 */
static void test_best(void **state)
{
    static const uint32_t shapes[][2] = {{2, 2}, {2, 3}, {2, 5}, {2, 6},
                                         {3, 2}, {3, 3}, {3, 4}, {4, 3}};
    const int cases = is_short() ? 200 : 2000;
    uint64_t random = 1;
    int best = 0;
    int all = 0;
    static result r;

    for (int i = 0; i < cases; i++)
        for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
            uint64_t costs[12];
            uint32_t top = i % 2 == 0 ? 8 : 1000000;
            search s = {costs, shapes[k][0], shapes[k][1], {0}, {0},
                        UINT64_MAX};

            for (uint32_t n = 0; n < s.ranks * s.per_rank; n++)
                costs[n] = random_below(&random, top);
            try_all(&s, 0);
            deal_once(costs, s.ranks, s.per_rank, &r);
            assert_true(r.bound <= s.best && s.best <= r.max);
            assert_true(r.max <= s.best + s.best / 3);
            best += r.max == s.best || r.max <= r.bound + r.bound / 1024;
            all++;
        }
    print_message("# %d of %d deals are the best\n", best, all);
    assert_true(best > all * 7 / 10);
}

/* ---- Degenerate cases ---- */

static void test_degenerate(void **state)
{
    static uint64_t costs[600];
    static result r;

    /* One rank gets everything; with one item each there is no choice. */
    for (uint32_t i = 0; i < 600; i++)
        costs[i] = i * i % 97;
    deal_once(costs, 1, 600, &r);
    assert_int_equal(r.max, r.bound);
    deal_once(costs, 600, 1, &r);
    assert_int_equal(r.max, 96);
    assert_int_equal(r.bound, 96);
    for (uint32_t i = 0; i < 600; i++)
        assert_int_equal(r.ranks[i], i);
    deal_once(costs, 1, 1, &r);
    assert_int_equal(r.max, 0);

    /* All are equal: perfectly even. */
    for (uint32_t i = 0; i < 600; i++)
        costs[i] = 7;
    deal_once(costs, 24, 25, &r);
    assert_int_equal(r.max, 7 * 25);
    assert_int_equal(r.bound, 7 * 25);

    /* One huge item: with the cheapest ones, and it sets the bound. */
    for (uint32_t i = 0; i < 600; i++)
        costs[i] = 100 + i;
    costs[300] = 1000000;
    deal_once(costs, 24, 25, &r);
    assert_int_equal(r.bound, 1000000 + 24 * 100 + 23 * 24 / 2);
    assert_true(r.max <= r.bound + r.bound / 1024);

    /* Three huge items share with six others, two cheaper; then four do. */
    for (uint32_t i = 0; i < 600; i++)
        costs[i] = 10;
    costs[5] = costs[7] = costs[11] = 100;
    costs[0] = costs[1] = 1;
    deal_once(costs, 4, 3, &r);
    assert_int_equal(r.bound, (300 + 2 * 1 + 4 * 10) / 3);
    assert_int_equal(r.max, 120);
    costs[2] = 100;
    deal_once(costs, 3, 4, &r);
    assert_int_equal(r.bound, 202);
    assert_int_equal(r.max, 202);

    /* Nothing costs anything. */
    memset(costs, 0, sizeof costs);
    deal_once(costs, 24, 25, &r);
    assert_int_equal(r.max, 0);
}

static void test_refused(void **state)
{
    uint64_t costs[4] = {INT64_MAX, 0, 0, 0};
    uint32_t ranks[4];
    ps_deal *deal;
    ps_error err;

    assert_result(ps_deal_open(&deal, 0, 1, &err), PS_ERR_ARGUMENT, &err);
    assert_null(deal);
    assert_result(ps_deal_open(&deal, 1, 0, &err), PS_ERR_ARGUMENT, &err);
    assert_result(ps_deal_open(&deal, 65536, 65536, &err), PS_ERR_ARGUMENT,
                  &err);
    assert_result(ps_deal_open(&deal, 2, PS_MAX_DEAL / 2 + 1, &err),
                  PS_ERR_ARGUMENT, &err);

    assert_ok(ps_deal_open(&deal, 2, 2, &err), &err);
    assert_ok(ps_deal_make(deal, costs, ranks, &err), &err);
    assert_int_equal(ps_deal_max(deal), INT64_MAX);
    costs[3] = 1;
    assert_result(ps_deal_make(deal, costs, ranks, &err), PS_ERR_LIMIT, &err);
    costs[0] = 0;
    costs[3] = UINT64_MAX;
    ranks[0] = 9;
    assert_result(ps_deal_make(deal, costs, ranks, &err), PS_ERR_LIMIT, &err);
    assert_int_equal(ranks[0], 9);
    assert_int_equal(ps_deal_max(deal), INT64_MAX);
    ps_deal_free(deal);
    ps_deal_free(NULL);
}

/* ---- Large ones ---- */

/* A heavy tail: half the items are near the minimum, a few at five times it. */
static void draw(uint64_t *random, uint64_t *costs, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint64_t u = 250 + random_below(random, 10000);

        costs[i] = 1000000 + UINT64_C(1000000000) / u;
    }
}

/* An assignment does not depend on earlier ones of the same handle. */
static void test_same_again(void **state)
{
    const uint32_t n = 512 * 16;
    static uint64_t costs[3][512 * 16];
    static result first[3];
    static result again;
    uint64_t random = 3;
    ps_deal *deal;
    ps_error err;

    for (int i = 0; i < 3; i++) {
        draw(&random, costs[i], n);
        deal_once(costs[i], 512, 16, &first[i]);
    }
    assert_ok(ps_deal_open(&deal, 512, 16, &err), &err);
    for (int i = 0; i < 9; i++) {
        deal_with(deal, costs[i % 3], &again);
        assert_memory_equal(again.ranks, first[i % 3].ranks,
                            n * sizeof again.ranks[0]);
        assert_int_equal(again.max, first[i % 3].max);
    }
    ps_deal_free(deal);
}

/* Sums are within 1 % of the bound, given enough items. */
static void test_even(void **state)
{
    static const uint32_t shapes[][2] = {{2, 16}, {8, 16}, {64, 16},
                                         {512, 16}, {8, 56}, {3, 5000}};
    const int cases = is_short() ? 4 : 40;
    static uint64_t costs[MAX_ITEMS];
    static result r;
    uint64_t random = 5;

    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
        for (int i = 0; i < cases; i++) {
            draw(&random, costs, shapes[k][0] * shapes[k][1]);
            deal_once(costs, shapes[k][0], shapes[k][1], &r);
            if (r.max > r.bound + r.bound / 100)
                fail_msg("%" PRIu32 " x %" PRIu32 ": %" PRIu64
                         ", the bound is %" PRIu64,
                         shapes[k][0], shapes[k][1], r.max, r.bound);
        }
}

/* ---- Costs and memory ---- */

static void test_cost(void **state)
{
    ps_pack pack = {.n_tok = 10, .sum_len_sq = 58};
    ps_cost cost = ps_cost_attention(1024);
    uint64_t value;
    ps_error err;

    assert_int_equal(cost.tokens, 6144);
    assert_int_equal(cost.squares, 1);
    assert_ok(ps_pack_cost(&cost, &pack, &value, &err), &err);
    assert_int_equal(value, 61440 + 58);
    cost = (ps_cost){.tokens = 0, .squares = 3};
    assert_ok(ps_pack_cost(&cost, &pack, &value, &err), &err);
    assert_int_equal(value, 174);
    cost = (ps_cost){.tokens = UINT64_MAX / 10, .squares = 0};
    assert_ok(ps_pack_cost(&cost, &pack, &value, &err), &err);
    cost.squares = 1;
    assert_result(ps_pack_cost(&cost, &pack, &value, &err), PS_ERR_LIMIT,
                  &err);
    cost.tokens = UINT64_MAX / 10 + 1;
    assert_result(ps_pack_cost(&cost, &pack, &value, &err), PS_ERR_LIMIT,
                  &err);
    /* A hostile file can have this value. */
    pack.sum_len_sq = UINT64_MAX;
    cost = (ps_cost){.tokens = 0, .squares = 2};
    assert_result(ps_pack_cost(&cost, &pack, &value, &err), PS_ERR_LIMIT,
                  &err);
}

static void test_memory(void **state)
{
    static uint64_t costs[512 * 16];
    static result r;
    uint64_t random = 7;
    uint64_t calls;
    ps_deal *deal;
    ps_error err;

    alloc_watch();
    assert_ok(ps_deal_open(&deal, 512, 16, &err), &err);
    calls = alloc_so_far().calls;
    assert_true(alloc_so_far().bytes <= 56 * 512 * 16 + 36 * 512 + 4 * 16 +
                                            2048);
    draw(&random, costs, 512 * 16);
    deal_with(deal, costs, &r);
    assert_int_equal(alloc_so_far().calls, calls);
    ps_deal_free(deal);
    for (uint64_t nth = 1; nth <= calls; nth++) {
        alloc_fail(nth, false);
        assert_result(ps_deal_open(&deal, 512, 16, &err), PS_ERR_MEMORY,
                      &err);
        assert_null(deal);
        alloc_fail(0, false);
    }
    assert_int_equal(alloc_so_far().blocks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_best),
        cmocka_unit_test(test_degenerate),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_same_again),
        cmocka_unit_test(test_even),
        cmocka_unit_test(test_cost),
        cmocka_unit_test(test_memory),
    };

    return run_as_tap("deal", tests, NULL);
}
