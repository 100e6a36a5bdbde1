/*
 * epoch-t.c - the order of an epoch contains each number once, never changes,
 * and is uniformly random.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <string.h>

#define MOST 300

/* Every count up to MOST, and one that exceeds 32 bits. */
static void test_permutation(void **state)
{
    for (uint64_t n = 1; n <= MOST; n++) {
        bool seen[MOST] = {false};

        for (uint64_t i = 0; i < n; i++) {
            const uint64_t number = ps_shuffled(n, n, 3, i);

            assert_true(number < n && !seen[number]);
            seen[number] = true;
            assert_int_equal(ps_shuffled_place(n, n, 3, number), i);
        }
    }
    assert_int_equal(ps_shuffled(0, 1, 0, 0), 0);
    assert_int_equal(ps_shuffled(5, 1, 0, 5), 5);
    assert_int_equal(ps_shuffled_place(0, 1, 0, 0), 0);
    assert_int_equal(ps_shuffled_place(5, 1, 0, 5), 5);
    for (uint64_t i = 0; i < 1000; i++) {
        const uint64_t n = (UINT64_C(1) << 40) + 1;

        assert_true(ps_shuffled(n, 9, 9, n - 1 - i) < n);
        assert_true(ps_shuffled(UINT64_MAX, 9, 9, i) < UINT64_MAX);
        assert_int_equal(
            ps_shuffled_place(n, 9, 9, ps_shuffled(n, 9, 9, n - 1 - i)),
            n - 1 - i);
        assert_int_equal(
            ps_shuffled_place(UINT64_MAX, 9, 9,
                              ps_shuffled(UINT64_MAX, 9, 9, i)), i);
    }
}

/* Interrupted training resumes with these numbers after an update. */
static void test_fixed(void **state)
{
    static const uint64_t wanted[] = {3, 7, 8, 6, 0, 4, 1, 2, 9, 5};

    for (uint64_t i = 0; i < 10; i++)
        assert_int_equal(ps_shuffled(10, 7, 1, i), wanted[i]);
    assert_int_equal(ps_shuffled(1000000, 7, 1, 0), 439635);
    assert_int_equal(ps_shuffled(UINT64_MAX, UINT64_MAX, UINT64_MAX, 0),
                     UINT64_C(11928924950763094166));
}

/* The sum of (found - expected)^2 / expected. */
static double chi_square(const uint32_t *counts, uint32_t n, double expected)
{
    double sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += (counts[i] - expected) * (counts[i] - expected) / expected;
    return sum;
}

/*
 * All 120 orders of five, over seeds and epochs.  With 119 degrees of freedom
 * the sum exceeds 200 less than once in 100,000 times.
 */
static void test_all_orders(void **state)
{
    static uint32_t counts[120];

    for (uint64_t draw = 0; draw < UINT64_C(120) * 100; draw++) {
        uint64_t order[5];
        uint32_t which = 0;

        for (uint32_t i = 0; i < 5; i++)
            order[i] = ps_shuffled(5, draw / 4, draw % 4, i);
        for (uint32_t i = 0; i < 5; i++) {
            uint32_t lower = 0;

            for (uint32_t k = i + 1; k < 5; k++)
                lower += order[k] < order[i];
            which = which * (5 - i) + lower;
        }
        counts[which]++;
    }
    assert_true(chi_square(counts, 120, 100) < 200);
}

/*
 * Successors in one long order: differences modulo n, in 128 classes, exceed
 * 213 less than once in 100,000 times.
 */
static void test_neighbours(void **state)
{
    static uint32_t counts[128];
    const uint64_t n = 128 * 1000;
    uint64_t before = ps_shuffled(n, 11, 0, n - 1);

    for (uint64_t i = 0; i < n; i++) {
        const uint64_t number = ps_shuffled(n, 11, 0, i);

        counts[(number + n - before) % n / 1000]++;
        before = number;
    }
    assert_true(chi_square(counts, 128, 1000) < 213);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_permutation),
        cmocka_unit_test(test_fixed),
        cmocka_unit_test(test_all_orders),
        cmocka_unit_test(test_neighbours),
    };

    return run_as_tap("epoch", tests, NULL);
}
