/*
 * histogram-t.c - counts of lengths, added in any order.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-alloc.h"
#include "plan-naive.h"

#include <stdlib.h>

static void assert_bin(const ps_histogram *h, size_t i, uint32_t length,
                       uint64_t count)
{
    assert_int_equal(ps_histogram_length(h, i), length);
    assert_int_equal(ps_histogram_count(h, i), count);
}

static void test_empty(void **state)
{
    ps_histogram *h = open_histogram();

    assert_int_equal(ps_histogram_size(h), 0);
    assert_int_equal(ps_histogram_sequences(h), 0);
    assert_int_equal(ps_histogram_tokens(h), 0);
    ps_histogram_free(h);
    ps_histogram_free(NULL);
}

static void test_any_order(void **state)
{
    ps_histogram *h = open_histogram();

    add_lengths(h, 7, 2);
    add_lengths(h, 5, 1);
    add_lengths(h, 7, 3);
    add_lengths(h, UINT32_MAX, 1);
    add_lengths(h, 5, 10);
    add_lengths(h, 6, 4);
    assert_int_equal(ps_histogram_size(h), 4);
    assert_bin(h, 0, 5, 11);
    assert_bin(h, 1, 6, 4);
    assert_bin(h, 2, 7, 5);
    assert_bin(h, 3, UINT32_MAX, 1);
    assert_int_equal(ps_histogram_sequences(h), 21);
    assert_int_equal(ps_histogram_tokens(h),
                     55 + 24 + 35 + (uint64_t)UINT32_MAX);
    ps_histogram_free(h);
}

/* Queries are mixed with additions, because a query may move entries. */
static void test_against_array(void **state)
{
    enum { LENGTHS = 500, ADDITIONS = 3000 };
    uint64_t *counts = must_alloc((LENGTHS + 1) * sizeof *counts);
    uint64_t random = 11;

    for (unsigned round = 0; round < 30; round++) {
        ps_histogram *h = open_histogram();
        size_t i = 0;

        for (unsigned k = 0; k <= LENGTHS; k++)
            counts[k] = 0;
        for (unsigned k = 0; k < ADDITIONS; k++) {
            uint32_t length = 1 + random_below(&random, LENGTHS);
            uint32_t count = 1 + random_below(&random, 9);

            counts[length] += count;
            add_lengths(h, length, count);
            if (random_below(&random, 50) < round)
                assert_int_equal(ps_histogram_length(h, 0) > 0, 1);
        }
        for (uint32_t k = 1; k <= LENGTHS; k++)
            if (counts[k] > 0)
                assert_bin(h, i++, k, counts[k]);
        assert_int_equal(ps_histogram_size(h), i);
        ps_histogram_free(h);
    }
    free(counts);
}

/* The worst order for a sorted array must not take quadratic time. */
static void test_descending(void **state)
{
    enum { LENGTHS = 1 << 20 };
    ps_histogram *h = open_histogram();

    for (uint32_t length = LENGTHS; length > 0; length--)
        add_lengths(h, length, length);
    assert_int_equal(ps_histogram_size(h), LENGTHS);
    for (uint32_t i = 0; i < LENGTHS; i += 4999)
        assert_bin(h, i, i + 1, i + 1);
    ps_histogram_free(h);
}

static void test_refused(void **state)
{
    ps_histogram *h = open_histogram();
    ps_error err;

    assert_result(ps_histogram_add(h, 0, 1, &err), PS_ERR_ARGUMENT, &err);
    assert_string_equal(err.text, "histogram: length of 0");
    assert_result(ps_histogram_add(h, 1, 0, &err), PS_ERR_ARGUMENT, &err);
    assert_string_equal(err.text, "histogram: count of 0");
    assert_int_equal(ps_histogram_add(h, 0, 1, NULL), PS_ERR_ARGUMENT);
    ps_histogram_free(h);
}

static void test_limits(void **state)
{
    const uint64_t max = INT64_MAX;
    ps_histogram *h = open_histogram();
    ps_error err;

    assert_result(ps_histogram_add(h, 1, max + 1, &err), PS_ERR_LIMIT,
                  &err);
    assert_result(ps_histogram_add(h, 1, UINT64_MAX, &err), PS_ERR_LIMIT,
                  &err);
    assert_result(ps_histogram_add(h, 2, max / 2 + 1, &err), PS_ERR_LIMIT,
                  &err);
    assert_result(ps_histogram_add(h, UINT32_MAX, max / 2, &err),
                  PS_ERR_LIMIT, &err);
    add_lengths(h, 2, max / 2);
    add_lengths(h, 1, 1);
    assert_result(ps_histogram_add(h, 1, 1, &err), PS_ERR_LIMIT, &err);
    assert_int_equal(ps_histogram_tokens(h), max);
    assert_int_equal(ps_histogram_sequences(h), max / 2 + 1);
    ps_histogram_free(h);
}

/* Adds lengths until memory runs out; the counts so far are kept. */
static void test_memory(void **state)
{
    ps_histogram *h = NULL;
    ps_error err;

    for (uint64_t nth = 1; nth <= 2; nth++) {
        alloc_fail(nth, false);
        assert_result(ps_histogram_open(&h, &err), PS_ERR_MEMORY, &err);
        assert_null(h);
    }
    alloc_fail(0, false);
    h = open_histogram();
    for (uint32_t length = 1; length <= 64; length++)
        add_lengths(h, length, 1);
    alloc_fail(1, true);
    assert_result(ps_histogram_add(h, 65, 1, &err), PS_ERR_MEMORY, &err);
    alloc_fail(0, false);
    assert_int_equal(ps_histogram_size(h), 64);
    assert_int_equal(ps_histogram_sequences(h), 64);
    ps_histogram_free(h);
    assert_int_equal(alloc_so_far().blocks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_against_array),
        cmocka_unit_test(test_descending),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_memory),
    };

    return run_as_tap("histogram", tests, NULL);
}
