/*
 * shuffle-t.c - packs leave in random order, which depends on the seed.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include "engine/shuffle.h"
#include "engine/window.h"

/* Puts `n` packs of one slot each and takes them all. */
static void draw(uint64_t seed, uint32_t n, uint32_t *order)
{
    ps_mem mem = {0};
    ps_shuffle *s = ps_shuffle_open(seed, n, n, &mem);

    assert_non_null(s);
    for (uint32_t i = 0; i < n; i++) {
        assert_false(ps_shuffle_is_full(s));
        ps_shuffle_put(s, &i, 1, 1, i, i + 1);
    }
    assert_true(ps_shuffle_is_full(s));
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(ps_shuffle_take(s, false, &order[i]), 1);
    assert_int_equal(ps_shuffle_oldest(s), PS_NO_SLOT);
    ps_shuffle_free(s);
}

/*
 * SplitMix64 from 1.  The upper half of each number, times the packs left, over
 * 2^32 is the index of the pack that leaves; the last pack moves to its slot.
 */
static void test_the_order_of_a_seed(void **state)
{
    static const uint32_t wanted[12] = {6, 8, 9, 3, 10, 5,
                                        11, 2, 1, 4, 0, 7};
    uint32_t order[12];

    draw(1, 12, order);
    assert_memory_equal(order, wanted, sizeof wanted);
}

/* With few packs, each is first about equally often. */
static void test_each_as_often(void **state)
{
    uint32_t first[5] = {0};
    uint32_t order[5];

    for (uint64_t seed = 0; seed < 5000; seed++) {
        draw(seed, 5, order);
        first[order[0]]++;
    }
    for (uint32_t i = 0; i < 5; i++)
        assert_in_range(first[i], 900, 1100);
}

/* Full by tokens, but not with fewer sequences than the minimum. */
static void test_full_by_tokens(void **state)
{
    ps_mem mem = {0};
    ps_shuffle *s = ps_shuffle_open(3, 100, 200, &mem);
    uint32_t slots[3] = {0, 1, 2};
    uint32_t n;

    assert_non_null(s);
    s->least = 4;
    s->enough = 1000;
    ps_shuffle_put(s, slots, 3, 5000, 0, 1);
    assert_false(ps_shuffle_is_full(s));
    slots[0] = 3;
    ps_shuffle_put(s, slots, 1, 1, 3, 2);
    assert_true(ps_shuffle_is_full(s));
    assert_int_equal(ps_shuffle_take(s, true, slots), 3);
    assert_true(s->tokens == 1);
    for (n = 1; n < 10; n++) {
        slots[0] = 10 + n;
        assert_false(ps_shuffle_is_full(s));
        ps_shuffle_put(s, slots, 1, 111, slots[0], 2 + n);
    }
    assert_true(s->tokens == 1000);
    assert_true(ps_shuffle_is_full(s));
    (void)ps_shuffle_take(s, false, slots);
    assert_false(ps_shuffle_is_full(s));
    ps_shuffle_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_order_of_a_seed),
        cmocka_unit_test(test_each_as_often),
        cmocka_unit_test(test_full_by_tokens),
    };

    return run_as_tap("shuffle", tests, NULL);
}
