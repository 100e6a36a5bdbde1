/*
 * window-t.c - the window against a naive list of sequences by age.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <string.h>

#include "window.h"

typedef struct entry {
    uint32_t slot;
    uint32_t length;
} entry;

/* The naive window: oldest first. */
typedef struct pair {
    ps_window *window;
    uint32_t size;
    uint32_t longest;
    entry *list;
    uint32_t n;
} pair;

static pair open_pair(uint32_t size, uint32_t longest)
{
    pair p = {.size = size, .longest = longest};
    ps_error err;

    p.list = must_alloc(size * sizeof *p.list);
    assert_ok(ps_window_open(&p.window, size, longest, &err), &err);
    return p;
}

static void close_pair(pair *p)
{
    ps_window_free(p->window);
    free(p->list);
}

/* Of a length, or of all if it is 0. */
static uint32_t naive_oldest(const pair *p, uint32_t length)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (length == 0 || p->list[i].length == length)
            return p->list[i].slot;
    return PS_NO_SLOT;
}

static uint32_t naive_count(const pair *p, uint32_t length)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < p->n; i++)
        count += p->list[i].length == length;
    return count;
}

static uint32_t naive_longest(const pair *p, uint32_t limit)
{
    uint32_t longest = 0;

    for (uint32_t i = 0; i < p->n; i++)
        if (p->list[i].length <= limit && p->list[i].length > longest)
            longest = p->list[i].length;
    return longest;
}

static void compare(const pair *p)
{
    const ps_window *w = p->window;

    assert_int_equal(ps_window_count(w), p->n);
    assert_int_equal(ps_window_full(w), p->n == p->size);
    assert_int_equal(ps_window_oldest(w), naive_oldest(p, 0));
    for (uint32_t i = 0; i < p->n; i++)
        assert_int_equal(ps_window_length(w, p->list[i].slot),
                         p->list[i].length);
    for (uint32_t length = 1; length <= p->longest; length++) {
        assert_int_equal(ps_window_oldest_of(w, length),
                         naive_oldest(p, length));
        assert_int_equal(ps_window_count_of(w, length),
                         naive_count(p, length));
    }
    for (uint32_t limit = 0; limit <= p->longest; limit++)
        assert_int_equal(ps_window_longest(w, limit),
                         naive_longest(p, limit));
}

static void admit(pair *p, uint32_t length)
{
    uint32_t slot = ps_window_admit(p->window, length);

    assert_true(slot < p->size);
    for (uint32_t i = 0; i < p->n; i++)
        assert_int_not_equal(p->list[i].slot, slot);
    p->list[p->n++] = (entry){slot, length};
}

/* Takes the oldest of a length, which must be there. */
static void take(pair *p, uint32_t length)
{
    uint32_t slot = naive_oldest(p, length);
    uint32_t at = 0;

    assert_int_equal(ps_window_take(p->window, length), slot);
    assert_int_equal(ps_window_length(p->window, slot), length);
    while (p->list[at].slot != slot)
        at++;
    p->n--;
    memmove(p->list + at, p->list + at + 1,
            (p->n - at) * sizeof *p->list);
}

static void run(uint32_t size, uint32_t longest, uint64_t random, int steps)
{
    pair p = open_pair(size, longest);

    compare(&p);
    for (int step = 0; step < steps; step++) {
        bool fills = random_below(&random, 100) < (step / 50 % 2 ? 30 : 70);

        if (p.n < p.size && (p.n == 0 || fills))
            admit(&p, 1 + random_below(&random, longest));
        else
            take(&p, p.list[random_below(&random, p.n)].length);
        compare(&p);
    }
    while (p.n > 0) {
        take(&p, p.list[random_below(&random, p.n)].length);
        compare(&p);
    }
    close_pair(&p);
}

static void test_random(void **state)
{
    static const uint32_t sizes[] = {1, 2, 3, 7, 20, 64};
    static const uint32_t longest[] = {1, 2, 5, 63, 64, 70};

    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (size_t l = 0; l < sizeof longest / sizeof longest[0]; l++)
            run(sizes[s], longest[l], 1 + s * 10 + l, 400);
}

/* Of one length the first to come is the first to go, round and round. */
static void test_fifo_of_one_length(void **state)
{
    pair p = open_pair(5, 9);

    (void)state;
    for (int round = 0; round < 40; round++) {
        while (p.n < p.size)
            admit(&p, 9);
        compare(&p);
        for (int i = 0; i < 1 + round % 5; i++)
            take(&p, 9);
        compare(&p);
    }
    close_pair(&p);
}

/* What a taken slot says stays readable until the next admit. */
static void test_taken_slots_stay(void **state)
{
    pair p = open_pair(4, 100);
    uint32_t slots[4];

    (void)state;
    for (uint32_t i = 0; i < 4; i++)
        admit(&p, 10 * (i + 1));
    for (uint32_t i = 0; i < 4; i++)
        slots[i] = ps_window_take(p.window, 10 * (i + 1));
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(ps_window_length(p.window, slots[i]), 10 * (i + 1));
    assert_int_equal(ps_window_oldest(p.window), PS_NO_SLOT);
    close_pair(&p);
}

static void test_longest_of_all(void **state)
{
    ps_window *w;
    ps_error err;
    uint32_t slot;

    (void)state;
    assert_ok(ps_window_open(&w, 2, PS_MAX_CAPACITY, &err), &err);
    slot = ps_window_admit(w, PS_MAX_CAPACITY);
    assert_int_equal(ps_window_longest(w, PS_MAX_CAPACITY),
                     PS_MAX_CAPACITY);
    assert_int_equal(ps_window_longest(w, PS_MAX_CAPACITY - 1), 0);
    assert_int_equal(ps_window_admit(w, 1), slot ^ 1);
    assert_int_equal(ps_window_longest(w, PS_MAX_CAPACITY - 1), 1);
    assert_int_equal(ps_window_take(w, PS_MAX_CAPACITY), slot);
    assert_int_equal(ps_window_longest(w, PS_MAX_CAPACITY), 1);
    ps_window_free(w);
    ps_window_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_fifo_of_one_length),
        cmocka_unit_test(test_taken_slots_stay),
        cmocka_unit_test(test_longest_of_all),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("window", tests, NULL, NULL);
}
