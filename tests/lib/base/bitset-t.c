/*
 * bitset-t.c - the bitset against a naive set.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>

#include "base/bitset.h"

/* The naive set: a byte per number. */
typedef struct pair {
    ps_bitset set;
    unsigned char *has;
    uint32_t max;
} pair;

static pair open_pair(uint32_t max)
{
    pair p = {.max = max, .has = calloc((size_t)max + 1, 1)};

    ps_mem mem = {0};

    assert_non_null(p.has);
    ps_bitset_init(&p.set, max, &mem);
    assert_false(mem.failed);
    return p;
}

static void close_pair(pair *p)
{
    ps_bitset_destroy(&p->set);
    assert_null(p->set.words);
    free(p->has);
}

static void add(pair *p, uint32_t number)
{
    ps_bitset_add(&p->set, number);
    p->has[number] = 1;
}

static void drop(pair *p, uint32_t number)
{
    ps_bitset_remove(&p->set, number);
    p->has[number] = 0;
}

/* Both return the same greatest member at or below `limit`. */
static void compare(const pair *p, uint32_t limit)
{
    uint32_t number = UINT32_MAX;
    uint32_t at = limit;
    bool found = ps_bitset_at_most(&p->set, limit, &number);

    while (at > 0 && !p->has[at])
        at--;
    assert_int_equal(found, p->has[at]);
    if (found)
        assert_int_equal(number, at);
}

static void compare_all(const pair *p)
{
    for (uint32_t limit = 0; limit <= p->max; limit++)
        compare(p, limit);
}

static void test_every_small_size(void **state)
{
    uint64_t random = 1;

    for (uint32_t max = 0; max <= 200; max++) {
        pair p = open_pair(max);

        compare_all(&p);
        for (int step = 0; step < 60; step++) {
            uint32_t number = random_below(&random, max + 1);

            if (random_below(&random, 3) == 0)
                drop(&p, number);
            else
                add(&p, number);
            compare_all(&p);
        }
        close_pair(&p);
    }
}

/* One member at a time, at the boundaries of words at both levels. */
static void test_seams(void **state)
{
    static const uint32_t seams[] = {0,    1,    62,   63,     64,     65,
                                     127,  128,  4094, 4095,   4096,   4097,
                                     8191, 8192, 4159, 262143, 262144, 262145};
    pair p = open_pair(262145);

    for (size_t i = 0; i < COUNT(seams); i++) {
        add(&p, seams[i]);
        compare(&p, seams[i]);
        compare(&p, p.max);
        if (seams[i] > 0)
            compare(&p, seams[i] - 1);
        drop(&p, seams[i]);
        compare(&p, p.max);
    }
    close_pair(&p);
}

static void test_largest_sparse(void **state)
{
    pair p = open_pair(PS_MAX_CAPACITY);
    uint64_t random = 99;

    compare(&p, p.max);
    add(&p, 0);
    compare(&p, p.max);
    add(&p, p.max);
    compare(&p, p.max);
    compare(&p, p.max - 1);
    drop(&p, p.max);
    for (int i = 0; i < 3000; i++) {
        add(&p, random_below(&random, p.max + 1));
        compare(&p, random_below(&random, p.max + 1));
        drop(&p, random_below(&random, p.max + 1));
    }
    close_pair(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_small_size),
        cmocka_unit_test(test_seams),
        cmocka_unit_test(test_largest_sparse),
    };

    return run_as_tap("bitset", tests, NULL);
}
