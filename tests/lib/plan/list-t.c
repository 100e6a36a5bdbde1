/*
 * list-t.c - plans as lists of strategies, and the faults that a check finds.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"
#include "plan-naive.h"

#include "plan/plan.h"

/* A plan from "COUNT:LENGTH+LENGTH COUNT:LENGTH". */
static ps_plan *plan_of(const char *text)
{
    ps_plan *plan;
    ps_error err;
    char *end;

    assert_ok(ps_plan_open(&plan, &err), &err);
    while (*text != '\0') {
        uint64_t count = strtoull(text, &end, 10);
        uint32_t lengths[8];
        uint32_t n = 0;

        do {
            lengths[n++] = (uint32_t)strtoul(end + 1, &end, 10);
        } while (*end == '+');
        assert_ok(ps_plan_add(plan, count, lengths, n, &err), &err);
        text = *end == ' ' ? end + 1 : end;
    }
    return plan;
}

static void assert_strategy(const ps_plan *plan, size_t i, uint64_t count,
                            uint32_t n, const uint32_t *expected)
{
    const uint32_t *lengths;
    uint32_t n_lengths;

    assert_int_equal(ps_plan_strategy(plan, i, &lengths, &n_lengths), count);
    assert_int_equal(n_lengths, n);
    assert_memory_equal(lengths, expected, n * sizeof *expected);
}

static void test_merge(void **state)
{
    ps_plan *plan = plan_of("1:2 5:3+1+2 2:7 4:1+2+3 6:3+2 1:7");
    ps_error err;

    assert_int_equal(ps_plan_strategies(plan), 6);
    assert_strategy(plan, 1, 5, 3, (const uint32_t[]){1, 2, 3});
    assert_ok(ps_plan_merge(plan, &err), &err);
    assert_int_equal(ps_plan_strategies(plan), 4);
    assert_strategy(plan, 0, 3, 1, (const uint32_t[]){7});
    assert_strategy(plan, 1, 9, 3, (const uint32_t[]){1, 2, 3});
    assert_strategy(plan, 2, 6, 2, (const uint32_t[]){2, 3});
    assert_strategy(plan, 3, 1, 1, (const uint32_t[]){2});
    assert_int_equal(ps_plan_packs(plan), 19);
    assert_int_equal(ps_plan_max_depth(plan), 3);
    ps_plan_free(plan);
    ps_plan_free(NULL);
}

static void test_pack_limit(void **state)
{
    const uint32_t length = 1;
    ps_plan *plan;
    ps_error err;

    assert_ok(ps_plan_open(&plan, &err), &err);
    assert_ok(ps_plan_add(plan, INT64_MAX, &length, 1, &err), &err);
    assert_result(ps_plan_add(plan, 1, &length, 1, &err), PS_ERR_LIMIT,
                  &err);
    ps_plan_free(plan);
}

/* Faults that a check must find in a plan for "4:2 3:2" (10 tokens). */
static const struct {
    const char *plan;
    const char *text; /* NULL: nothing */
} faults[] = {
    {"2:4+3", NULL},
    {"1:4+3+3 1:4", NULL},
    {"1:4+3 1:4+3", NULL},
    {"1:4+3 1:4",
     "plan: 1 sequences of length 3 have no pack"},
    {"", "plan: 2 sequences of length 3 have no pack"},
    {"2:4+3+3", "plan: uses more sequences of length 3 than there are"},
    {"3:4+3", "plan: uses more sequences of length 3 than there are"},
    {"1:4+4+3", "plan: a pack has 11 tokens"},
    {"1:3+3+3+3", "plan: a pack has 4 sequences"},
    {"2:4+3 1:5", "plan: uses length 5, which no sequence has"},
    {"2:4+3 1:2", "plan: uses length 2, which no sequence has"},
};

static void test_check(void **state)
{
    ps_histogram *h = histogram_of("4:2 3:2");
    const ps_plan_options o = {.capacity = 10, .depth = 3};

    for (size_t i = 0; i < COUNT(faults); i++) {
        ps_plan *plan = plan_of(faults[i].plan);
        ps_error err = {.text = ""};
        ps_result r = ps_plan_check(plan, h, &o, &err);

        assert_int_equal(r, faults[i].text == NULL ? PS_OK
                                                   : PS_ERR_CORRUPT);
        if (faults[i].text != NULL)
            assert_string_equal(err.text, faults[i].text);
        ps_plan_free(plan);
    }
    ps_histogram_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_pack_limit),
        cmocka_unit_test(test_check),
    };

    return run_as_tap("plan-list", tests, NULL);
}
