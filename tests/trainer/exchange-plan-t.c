/*
 * exchange-plan-t.c - assignment of packs to ranks, and refused input.
 *
 * SPDX-License-Identifier: MIT
 */
#include "ranks/exchange_plan.h"

#include <math.h>
#include <string.h>

#include "lib-fixture.h"

#define MOST 8 /* packs of a batch */

/* The second of three ranks' plan, and the costs it was given. */
typedef struct stand {
    tr_plan plan;
    tr_assigner *assigner;
} stand;

static stand open_stand(void)
{
    const tr_loader_options options = {.ranks = 3, .hidden = 16};
    stand s = {.assigner = tr_assigner_open(&options)};
    ps_error err;

    assert_non_null(s.assigner);
    assert_ok(tr_plan_open(&s.plan, 1, 3, MOST, &err), &err);
    return s;
}

static void close_stand(stand *s)
{
    tr_plan_free(&s->plan);
    tr_assigner_free(s->assigner);
}

/* Packs of one sequence each: the first rank reads the first two, and so on. */
static void put_packs(stand *s, uint32_t capacity, const uint32_t *tokens)
{
    const uint64_t packs[] = {2, 0, 3};
    ps_error err;

    assert_ok(tr_plan_begin(&s->plan, capacity, packs, &err), &err);
    assert_int_equal(s->plan.n, 5);
    for (uint32_t i = 0; i < 5; i++)
        s->plan.packs[i].pack =
            (tr_pack_size){.n_seq = 1,
                           .n_tok = tokens[i],
                           .squares = (uint64_t)tokens[i] * tokens[i]};
    assert_ok(tr_plan_check(&s->plan, &err), &err);
}

static void test_readers(void **state)
{
    const uint32_t tokens[] = {9, 9, 9, 9, 9}, readers[] = {0, 0, 2, 2, 2};
    stand s = open_stand();

    (void)state;
    put_packs(&s, 10, tokens);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(tr_plan_reader(&s.plan, i), readers[i]);
    close_stand(&s);
}

/* Costs are 96 for each token, plus the squared length. */
static void test_costs(void **state)
{
    const uint32_t tokens[] = {3, 10, 1, 9, 10};
    stand s = open_stand();
    double imbalance;
    ps_error err;

    (void)state;
    put_packs(&s, 10, tokens);
    assert_ok(tr_plan_assign(&s.plan, s.assigner, &imbalance, &err), &err);
    assert_true(fabs(imbalance - 1242.0 * 3 / 3459) < 1e-9);
    close_stand(&s);
}

/* The second rank sends nothing, and receives the longest and the shortest. */
static void test_counts(void **state)
{
    const uint32_t tokens[] = {3, 10, 1, 9, 10}, ranks[] = {0, 0, 1, 2, 1};
    stand s = open_stand();
    ps_error err;

    (void)state;
    put_packs(&s, 10, tokens);
    memcpy(s.plan.to, ranks, sizeof ranks);
    assert_ok(tr_plan_count(&s.plan, &err), &err);
    for (int i = 0; i < 3; i++)
        assert_int_equal(s.plan.sent.count[i], 0);
    assert_int_equal(s.plan.got.count[0], 0);
    assert_int_equal(s.plan.got.count[2], 5 + 32);
    close_stand(&s);
}

static void test_too_many_packs(void **state)
{
    const uint64_t cases[][3] = {
        {MOST + 1, 0, 0}, {MOST, 1, 0}, {1, UINT64_MAX, 0}};
    const uint64_t packs[] = {0, MOST, 0};
    stand s = open_stand();
    ps_error err;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_result(tr_plan_begin(&s.plan, 10, cases[i], &err),
                      PS_ERR_CORRUPT, &err);
    assert_ok(tr_plan_begin(&s.plan, INT32_MAX / MOST, packs, &err), &err);
    assert_result(tr_plan_begin(&s.plan, INT32_MAX / MOST + 1, packs, &err),
                  PS_ERR_LIMIT, &err);
    close_stand(&s);
}

static void test_bad_packs(void **state)
{
    const tr_pack_size cases[] = {{0, 1, 1}, {2, 1, 1}, {1, 11, 121},
                               {1, 10, 9}, {1, 10, 101}};
    const uint64_t packs[] = {0, 0, 1};
    stand s = open_stand();
    ps_error err;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_ok(tr_plan_begin(&s.plan, 10, packs, &err), &err);
        s.plan.packs[0].pack = cases[i];
        assert_result(tr_plan_check(&s.plan, &err), PS_ERR_CORRUPT, &err);
        assert_non_null(strstr(err.text, "rank 2"));
    }
    close_stand(&s);
}

/* A pack has three numbers for each token; 2^31 of them are too many. */
static void test_too_much(void **state)
{
    const uint32_t n = (UINT32_C(1) << 28) - 1;
    const uint32_t tokens[] = {n, n, n, n, n};
    stand s = open_stand();
    double imbalance;
    ps_error err;

    (void)state;
    put_packs(&s, n, tokens);
    assert_ok(tr_plan_assign(&s.plan, s.assigner, &imbalance, &err), &err);
    assert_ok(tr_plan_count(&s.plan, &err), &err);
    s.plan.rank = 2; /* which would send three of them */
    assert_result(tr_plan_count(&s.plan, &err), PS_ERR_LIMIT, &err);
    close_stand(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_readers),
        cmocka_unit_test(test_costs),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_too_many_packs),
        cmocka_unit_test(test_bad_packs),
        cmocka_unit_test(test_too_much),
    };

    return run_as_tap("exchange-plan", tests, NULL);
}
