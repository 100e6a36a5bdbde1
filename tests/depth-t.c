/*
 * depth-t.c - the depth that is chosen by a histogram.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include "depth.h"

/* The depth for `n` lengths, each as often as `counts` says. */
static uint32_t choose(uint32_t capacity, uint32_t most, size_t n,
                       const uint32_t *lengths, const uint64_t *counts)
{
    const ps_engine_options options = {.capacity = capacity,
                                       .depth = most,
                                       .window = 256,
                                       .max_delay = 512};
    ps_histogram *h;
    uint32_t depth = 0;
    ps_error err;

    assert_ok(ps_histogram_open(&h, &err), &err);
    for (size_t i = 0; i < n; i++)
        assert_ok(ps_histogram_add(h, lengths[i], counts[i], &err), &err);
    assert_ok(ps_depth_choose(h, &options, &depth, &err), &err);
    ps_histogram_free(h);
    return depth;
}

static uint32_t choose_one(uint32_t capacity, uint32_t most, uint32_t length)
{
    const uint64_t count = 1000;

    return choose(capacity, most, 1, &length, &count);
}

/* Where all are alike, so many fit, rounded up to a candidate. */
static void test_one_length(void **state)
{
    (void)state;
    assert_int_equal(choose_one(100, 100, 100), 1);
    assert_int_equal(choose_one(100, 100, 51), 1);
    assert_int_equal(choose_one(100, 100, 50), 2);
    assert_int_equal(choose_one(100, 100, 33), 3);
    assert_int_equal(choose_one(100, 100, 20), 6); /* five of them */
    assert_int_equal(choose_one(100, 100, 10), 12);
    assert_int_equal(choose_one(100, 100, 1), 100);
    assert_int_equal(choose_one(70000, 65536, 1), 65536);
}

static void test_most(void **state)
{
    (void)state;
    assert_int_equal(choose_one(100, 1, 1), 1);
    assert_int_equal(choose_one(100, 5, 10), 5);
    assert_int_equal(choose(100, 100, 0, NULL, NULL), 1);
}

/* A few short ones are no reason for depth, many are. */
static void test_mixture(void **state)
{
    static const uint32_t lengths[] = {1, 50};
    static const uint64_t few[] = {1, 100000};
    static const uint64_t many[] = {50000, 1000};
    uint32_t depth;

    (void)state;
    assert_int_equal(choose(100, 100, 2, lengths, few), 2);
    depth = choose(100, 100, 2, lengths, many);
    assert_true(depth >= 48);
}

static void test_too_long(void **state)
{
    const ps_engine_options options = {
        .capacity = 9, .depth = 9, .window = 4, .max_delay = 8};
    ps_histogram *h;
    uint32_t depth;
    ps_error err;

    (void)state;
    assert_ok(ps_histogram_open(&h, &err), &err);
    assert_ok(ps_histogram_add(h, 10, 1, &err), &err);
    assert_result(ps_depth_choose(h, &options, &depth, &err),
                  PS_ERR_ARGUMENT, &err);
    ps_histogram_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_length),
        cmocka_unit_test(test_most),
        cmocka_unit_test(test_mixture),
        cmocka_unit_test(test_too_long),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("depth", tests, NULL, NULL);
}
