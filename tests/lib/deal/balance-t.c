/*
 * balance-t.c - every rank gets as many packs, within the capacity, and costs
 * as even as can be.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-alloc.h"
#include "lib-fixture.h"

#include <stdlib.h>
#include <string.h>

#define MOST 4000
#define MOST_RANKS 512

static const ps_cost attention = {24576, 1};

typedef struct result {
    uint32_t order[MOST];
    uint32_t ends[MOST + MOST_RANKS];
    uint32_t n_packs;
    double excess; /* of the costliest rank above the mean */
} result;

static uint64_t cost_of(const ps_cost *cost, uint64_t n)
{
    return cost->tokens * n + cost->squares * n * n;
}

/* Checks pack `p` and returns its cost. */
static uint64_t check_pack(const result *r, const uint32_t *lengths,
                           const ps_balance_options *o, uint32_t p, bool *seen)
{
    uint64_t sum = 0;
    const uint32_t begin = p == 0 ? 0 : r->ends[p - 1];
    uint32_t used = 0;

    for (uint32_t i = begin; i < r->ends[p]; i++) {
        const uint32_t id = r->order[i];

        assert_true(i == begin || r->order[i - 1] < id);
        assert_false(seen[id]);
        seen[id] = true;
        used += (lengths[id] + o->align - 1) / o->align * o->align;
        sum += cost_of(&o->cost, lengths[id]);
    }
    assert_true(used <= o->capacity);
    return sum;
}

/* Each sequence is in one pack, and each rank has as many packs, the costliest
 * first. */
static void check(result *r, const uint32_t *lengths, uint32_t n,
                  const ps_balance_options *o)
{
    bool *seen = calloc(n, sizeof *seen);
    const uint32_t per_rank = r->n_packs / o->ranks;
    uint64_t all = 0;
    uint64_t most = 0;

    assert_non_null(seen);
    assert_int_equal(r->n_packs, per_rank * o->ranks);
    assert_int_equal(r->ends[r->n_packs - 1], n);
    for (uint32_t rank = 0; rank < o->ranks; rank++) {
        uint64_t before = UINT64_MAX;
        uint64_t sum = 0;

        for (uint32_t i = 0; i < per_rank; i++) {
            const uint32_t p = rank * per_rank + i;
            const uint32_t begin = p == 0 ? 0 : r->ends[p - 1];
            const uint64_t cost = check_pack(r, lengths, o, p, seen);

            assert_true(r->ends[p] > begin ||
                        (r->ends[p] == begin && n < r->n_packs));
            assert_true(cost <= before);
            before = cost;
            sum += cost;
        }
        all += sum;
        most = sum > most ? sum : most;
    }
    r->excess = (double)most * o->ranks / (double)all - 1;
    free(seen);
}

static void balance(const uint32_t *lengths, uint32_t n,
                    const ps_balance_options *o, result *r)
{
    ps_error err;

    assert_ok(ps_balance(lengths, n, o, r->order, r->ends, &r->n_packs, &err),
              &err);
    check(r, lengths, n, o);
}

/* ---- Random steps ---- */

static void test_random(void **state)
{
    static const uint32_t ranks[] = {1, 2, 3, 8, 64, 500};
    const int cases = is_short() ? 300 : 3000;
    uint64_t random = 7;
    static result r;
    static result again;

    for (int i = 0; i < cases; i++) {
        const uint32_t capacity = 16 * (1 + random_below(&random, 200));
        const ps_balance_options o = {
            .ranks = ranks[random_below(&random, COUNT(ranks))],
            .capacity = capacity,
            .align = i % 3 == 0 ? 16 : 1,
            .cost = {random_below(&random, 3), 1 + random_below(&random, 2)}};
        const uint32_t n = o.ranks + random_below(&random, 1500);
        const uint32_t longest = 1 + random_below(&random, capacity);
        uint32_t lengths[2000];

        for (uint32_t k = 0; k < n; k++)
            lengths[k] = 1 + random_below(&random, longest);
        balance(lengths, n, &o, &r);
        balance(lengths, n, &o, &again);
        assert_int_equal(r.n_packs, again.n_packs);
        assert_memory_equal(r.order, again.order, n * sizeof *r.order);
        assert_memory_equal(r.ends, again.ends, r.n_packs * sizeof *r.ends);
    }
}

/* Roll-outs, most of them short and a tenth cut at the limit. */
static void draw_lengths(uint32_t *lengths)
{
    uint64_t random = 5;

    for (uint32_t i = 0; i < MOST; i++)
        lengths[i] = random_below(&random, 10) == 0
                         ? 16384
                         : 200 + random_below(&random, 40) *
                                     random_below(&random, 400);
}

static void test_even(void **state)
{
    static const struct {
        uint32_t ranks;
        double most; /* excess */
    } cases[] = {{8, 1e-6}, {64, 1e-4}, {512, 0.05}};
    static uint32_t lengths[MOST];
    static result r;
    uint64_t sum = 0;

    draw_lengths(lengths);
    for (uint32_t i = 0; i < MOST; i++)
        sum += lengths[i];
    for (size_t i = 0; i < COUNT(cases); i++) {
        const ps_balance_options o = {cases[i].ranks, 16384, 1, attention};
        const uint64_t bound = (sum + o.capacity - 1) / o.capacity;

        balance(lengths, MOST, &o, &r);
        /* No more packs than the bound, rounded up, and one for each rank. */
        assert_true(r.n_packs < bound + 2 * o.ranks);
        print_message("%u ranks: %g above the mean\n", cases[i].ranks,
                      r.excess);
        assert_true(r.excess <= cases[i].most);
    }
}

/* ---- Bounds of the arguments ---- */

static void test_small(void **state)
{
    static const uint32_t one[] = {5, 5, 5};
    static result r;
    ps_balance_options o = {3, 5, 1, attention};

    balance(one, 3, &o, &r);
    assert_int_equal(r.n_packs, 3);
    assert_true(r.excess < 1e-12);
    o.ranks = 1;
    o.capacity = 15;
    balance(one, 3, &o, &r);
    assert_int_equal(r.n_packs, 1);
    /* Three packs for two ranks, and nothing to split: one is empty. */
    o.ranks = 2;
    o.capacity = 5;
    balance(one, 3, &o, &r);
    assert_int_equal(r.n_packs, 4);
}

static void test_refused(void **state)
{
    static const uint32_t good[] = {5, 6, 7};
    static const uint32_t zero[] = {5, 0, 7};
    static const struct {
        const uint32_t *lengths;
        uint32_t n;
        ps_balance_options o;
        ps_result wanted;
    } cases[] = {
        {good, 3, {0, 8, 1, {1, 0}}, PS_ERR_ARGUMENT},
        {good, 3, {4, 8, 1, {1, 0}}, PS_ERR_ARGUMENT},
        {good, 0, {1, 8, 1, {1, 0}}, PS_ERR_ARGUMENT},
        {good, UINT32_MAX, {1, 8, 1, {1, 0}}, PS_ERR_ARGUMENT},
        {good, 3, {1, 0, 1, {1, 0}}, PS_ERR_ARGUMENT},
        {good, 3, {1, PS_MAX_CAPACITY + 1, 1, {1, 0}}, PS_ERR_ARGUMENT},
        {good, 3, {1, 8, 0, {1, 0}}, PS_ERR_ARGUMENT},
        {good, 3, {1, 8, 3, {1, 0}}, PS_ERR_ARGUMENT},
        {good, 3, {1, 8, 1, {0, 0}}, PS_ERR_ARGUMENT},
        {good, 3, {1, 6, 1, {1, 0}}, PS_ERR_OVERLONG},
        {zero, 3, {1, 8, 1, {1, 0}}, PS_ERR_EMPTY},
        {good, 3, {1, 8, 1, {UINT64_MAX, 0}}, PS_ERR_LIMIT},
        {good, 3, {1, 8, 1, {0, UINT64_MAX / 25}}, PS_ERR_LIMIT},
        {good, 3, {1, 8, 1, {INT64_MAX / 7, 0}}, PS_ERR_LIMIT},
    };
    static result r;
    ps_error err;

    for (size_t i = 0; i < COUNT(cases); i++) {
        r.n_packs = 9;
        assert_result(ps_balance(cases[i].lengths, cases[i].n, &cases[i].o,
                                 r.order, r.ends, &r.n_packs, &err),
                      cases[i].wanted, &err);
        assert_int_equal(r.n_packs, 0);
    }
}

static void test_memory(void **state)
{
    static uint32_t lengths[MOST];
    const ps_balance_options o = {64, 16384, 1, attention};
    const size_t before = alloc_so_far().blocks;
    static result r;
    uint64_t calls;
    ps_error err;

    draw_lengths(lengths);
    alloc_watch();
    balance(lengths, MOST, &o, &r);
    calls = alloc_so_far().calls;
    for (uint64_t nth = 1; nth < calls; nth++) { /* the last is the test's */
        alloc_watch();
        alloc_fail(nth, false);
        assert_result(ps_balance(lengths, MOST, &o, r.order, r.ends,
                                 &r.n_packs, &err),
                      PS_ERR_MEMORY, &err);
        alloc_fail(0, false);
    }
    assert_int_equal(alloc_so_far().blocks, before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random), cmocka_unit_test(test_even),
        cmocka_unit_test(test_small), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_memory)};

    return run_as_tap("balance", tests, NULL);
}
