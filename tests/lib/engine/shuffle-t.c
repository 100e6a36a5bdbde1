/*
 * shuffle-t.c - packs that leave in random order: each once, in an order
 * that is the seed's, and the oldest when it is asked for.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <string.h>

#include "engine/shuffle.h"
#include "engine/window.h"

#define MAX_SLOTS 64

/* What has been put and not taken: packs by their first slot. */
typedef struct model {
    ps_shuffle *shuffle;
    uint32_t depth;
    uint64_t random;
    uint64_t oldest[MAX_SLOTS];            /* 0: no such pack */
    uint32_t oldest_slot[MAX_SLOTS];
    uint32_t slots[MAX_SLOTS][MAX_SLOTS]; /* as they were put */
    uint32_t n[MAX_SLOTS];
    bool used[MAX_SLOTS];
    uint32_t sequences;
} model;

static uint64_t naive_oldest(const model *m)
{
    uint64_t oldest = UINT64_MAX;

    for (uint32_t i = 0; i < MAX_SLOTS; i++)
        if (m->oldest[i] != 0 && m->oldest[i] < oldest)
            oldest = m->oldest[i];
    return oldest;
}

/* It is the slot of a pack with the least time, or of none. */
static void assert_oldest(const model *m)
{
    uint32_t slot = ps_shuffle_oldest(m->shuffle);
    bool found = false;

    for (uint32_t i = 0; i < MAX_SLOTS; i++)
        if (m->oldest[i] != 0 && m->oldest_slot[i] == slot)
            found = m->oldest[i] == naive_oldest(m);
    assert_true(slot == PS_NO_SLOT ? m->sequences == 0 : found);
}

/* Slots come in any order, as the window gives them out. */
static void put(model *m, uint64_t oldest)
{
    uint32_t n = 1 + random_below(&m->random, m->depth);
    uint32_t slots[MAX_SLOTS];
    uint32_t first;

    for (uint32_t i = 0; i < n; i++) {
        do
            slots[i] = random_below(&m->random, MAX_SLOTS);
        while (m->used[slots[i]]);
        m->used[slots[i]] = true;
    }
    m->oldest_slot[slots[0]] = slots[n - 1];
    ps_shuffle_put(m->shuffle, slots, n, n, slots[n - 1], oldest);
    first = slots[0];
    memcpy(m->slots[first], slots, n * sizeof slots[0]);
    m->n[first] = n;
    m->oldest[first] = oldest;
    m->sequences += n;
    assert_oldest(m);
}

static void take(model *m, bool the_oldest)
{
    uint32_t slots[MAX_SLOTS];
    uint32_t n = ps_shuffle_take(m->shuffle, the_oldest, slots);
    uint32_t first = slots[0];

    assert_in_range(n, 1, m->depth);
    assert_true(first < MAX_SLOTS && m->oldest[first] != 0);
    assert_int_equal(n, m->n[first]);
    assert_memory_equal(slots, m->slots[first], n * sizeof slots[0]);
    if (the_oldest)
        assert_true(m->oldest[first] == naive_oldest(m));
    for (uint32_t i = 0; i < n; i++)
        m->used[slots[i]] = false;
    m->oldest[first] = 0;
    m->sequences -= n;
    assert_oldest(m);
}

/* Full with as many sequences as the window, and never with more room. */
static void run(uint64_t seed, uint32_t window, uint32_t depth)
{
    uint64_t now = 1;
    ps_mem mem = {0};
    model m = {.depth = depth, .random = seed + 1};

    assert_true(ps_shuffle_sequences(window, depth) <= MAX_SLOTS);
    m.shuffle = ps_shuffle_open(seed, window, MAX_SLOTS, &mem);
    assert_non_null(m.shuffle);
    assert_oldest(&m);
    for (int i = 0; i < 300; i++) {
        uint32_t dice = random_below(&m.random, 100);

        assert_int_equal(ps_shuffle_is_full(m.shuffle),
                         m.sequences >= window);
        if (m.sequences < window && (m.sequences == 0 || dice < 60))
            put(&m, now + random_below(&m.random, 20));
        else
            take(&m, dice % 3 == 0);
        assert_true(m.sequences <= ps_shuffle_sequences(window, depth));
        now += random_below(&m.random, 3);
    }
    while (m.sequences > 0)
        take(&m, false);
    ps_shuffle_free(m.shuffle);
}

static void test_each_leaves_once(void **state)
{
    static const uint32_t windows[] = {1, 2, 7, 40};
    static const uint32_t depths[] = {1, 3, 16};

    for (size_t w = 0; w < 4; w++)
        for (size_t d = 0; d < 3; d++)
            for (uint64_t seed = 0; seed < 8; seed++)
                run(seed << 61 | seed, windows[w], depths[d]);
    ps_shuffle_free(NULL);
}

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
 * SplitMix64 from 1; of each number the upper half, times the packs left,
 * over 2^32 says which leaves, and the last takes its place.
 */
static void test_the_order_of_a_seed(void **state)
{
    static const uint32_t wanted[12] = {6, 8, 9, 3, 10, 5,
                                        11, 2, 1, 4, 0, 7};
    uint32_t order[12];

    draw(1, 12, order);
    assert_memory_equal(order, wanted, sizeof wanted);
}

static void test_orders_differ(void **state)
{
    enum { SEEDS = 50 };
    uint32_t order[SEEDS][40];
    uint32_t again[40];

    for (uint32_t i = 0; i < SEEDS; i++) {
        draw(i, 40, order[i]);
        draw(i, 40, again);
        assert_memory_equal(order[i], again, sizeof again);
        for (uint32_t k = 0; k < i; k++)
            assert_memory_not_equal(order[k], order[i], sizeof again);
    }
}

/* Of few packs each leaves first about as often as the others. */
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

/* There is an end to the packs, too, however large the window is. */
static void test_max_packs(void **state)
{
    ps_mem mem = {0};
    ps_shuffle *s = ps_shuffle_open(3, 1 << 20, 1 << 20, &mem);
    uint32_t slot;
    uint32_t n = 0;

    assert_non_null(s);
    for (; !ps_shuffle_is_full(s); n++)
        ps_shuffle_put(s, &n, 1, 1, n, n + 1);
    assert_int_equal(n, 512);
    assert_int_equal(ps_shuffle_take(s, true, &slot), 1);
    assert_int_equal(slot, 0);
    assert_false(ps_shuffle_is_full(s));
    assert_int_equal(ps_shuffle_oldest(s), 1);
    ps_shuffle_free(s);
}

/* By tokens, too, but not with fewer sequences than the least. */
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
        cmocka_unit_test(test_each_leaves_once),
        cmocka_unit_test(test_the_order_of_a_seed),
        cmocka_unit_test(test_orders_differ),
        cmocka_unit_test(test_each_as_often),
        cmocka_unit_test(test_max_packs),
        cmocka_unit_test(test_full_by_tokens),
    };

    return run_as_tap("shuffle", tests, NULL);
}
