/*
 * window-t.c - the window against a naive list of sequences by age.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <string.h>

#include "engine/window.h"

typedef struct entry {
    uint32_t slot;
    uint32_t length;
    uint64_t time;
} entry;

/* The naive window, oldest first, and sequences taken but not yet released. */
typedef struct pair {
    ps_window window;
    uint32_t size;
    uint32_t spare;
    uint32_t longest;
    uint64_t time;
    entry *list;
    uint32_t n;
    entry *taken;
    uint32_t n_taken;
} pair;

static pair open_pair(uint32_t size, uint32_t spare, uint32_t longest)
{
    pair p = {.size = size, .spare = spare, .longest = longest};
    size_t slots = (size_t)size + spare;
    ps_mem mem = {0};

    p.list = must_alloc(slots * sizeof *p.list);
    p.taken = must_alloc(slots * sizeof *p.taken);
    ps_window_init(&p.window, size, spare, longest, &mem);
    assert_false(mem.failed);
    return p;
}

static void close_pair(pair *p)
{
    ps_window_destroy(&p->window);
    free(p->list);
    free(p->taken);
}

/* The oldest of a length, or of all lengths if it is 0. */
static uint32_t naive_oldest(const pair *p, uint32_t length)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (length == 0 || p->list[i].length == length)
            return p->list[i].slot;
    return PS_NO_SLOT;
}

static uint32_t naive_longest(const pair *p, uint32_t limit)
{
    uint32_t longest = 0;

    for (uint32_t i = 0; i < p->n; i++)
        if (p->list[i].length <= limit && p->list[i].length > longest)
            longest = p->list[i].length;
    return longest;
}

/* A slot keeps its contents after it was taken, until it is reused. */
static void compare_entry(const ps_window *w, const entry *e)
{
    assert_int_equal(w->slots[e->slot].length, e->length);
    assert_true(w->slots[e->slot].time == e->time);
}

static void compare(const pair *p)
{
    const ps_window *w = &p->window;
    uint64_t tokens = 0;

    assert_int_equal(w->count, p->n);
    assert_int_equal(w->count == w->size, p->n == p->size);
    assert_int_equal(w->oldest, naive_oldest(p, 0));
    for (uint32_t i = 0; i < p->n; i++) {
        compare_entry(w, &p->list[i]);
        tokens += p->list[i].length;
    }
    assert_int_equal(w->tokens, tokens);
    for (uint32_t i = 0; i < p->n_taken; i++)
        compare_entry(w, &p->taken[i]);
    for (uint32_t length = 1; length <= p->longest; length++) {
        const ps_window_queue *q = &w->queues[length];
        uint32_t count = 0;

        for (uint32_t i = 0; i < p->n; i++)
            count += p->list[i].length == length;
        assert_int_equal(q->count, count);
        if (q->count > 0)
            assert_int_equal(q->first, naive_oldest(p, length));
    }
    for (uint32_t limit = 0; limit <= p->longest; limit++)
        assert_int_equal(ps_window_longest(w, limit),
                         naive_longest(p, limit));
}

/* True if the window has room and a free slot for a sequence. */
static bool has_room(const pair *p)
{
    return p->n < p->size && p->n + p->n_taken < p->size + p->spare;
}

static void admit(pair *p, uint32_t length)
{
    uint32_t slot = ps_window_admit(&p->window, length, p->time);

    assert_true(slot < p->size + p->spare);
    for (uint32_t i = 0; i < p->n; i++)
        assert_int_not_equal(p->list[i].slot, slot);
    for (uint32_t i = 0; i < p->n_taken; i++)
        assert_int_not_equal(p->taken[i].slot, slot);
    p->list[p->n++] = (entry){slot, length, p->time};
}

static void drop(entry *list, uint32_t *n, uint32_t at)
{
    --*n;
    memmove(list + at, list + at + 1, (*n - at) * sizeof *list);
}

/* Takes the oldest of a length, which must exist. */
static void take(pair *p, uint32_t length)
{
    uint32_t slot = naive_oldest(p, length);
    uint32_t at = 0;

    assert_int_equal(ps_window_take(&p->window, length), slot);
    while (p->list[at].slot != slot)
        at++;
    p->taken[p->n_taken++] = p->list[at];
    drop(p->list, &p->n, at);
}

static void release(pair *p, uint32_t at)
{
    ps_window_release(&p->window, p->taken[at].slot);
    drop(p->taken, &p->n_taken, at);
}

/* Removes any sequence, and a later one of the same length if there is one. */
static void remove_at(pair *p, uint32_t at)
{
    uint32_t slots[2] = {0};
    uint32_t n = 0;

    for (uint32_t i = at; i < p->n && n < COUNT(slots); i++)
        if (p->list[i].length == p->list[at].length)
            slots[n++] = p->list[i].slot;
    ps_window_remove(&p->window, slots, n);
    for (uint32_t k = 0, i = at; k < n; i++)
        if (p->list[i].slot == slots[k]) {
            p->taken[p->n_taken++] = p->list[i];
            drop(p->list, &p->n, i--);
            k++;
        }
}

static void take_any(pair *p, uint64_t *random)
{
    const uint32_t at = random_below(random, p->n);

    if (random_below(random, 2) == 0)
        remove_at(p, at);
    else
        take(p, p->list[at].length);
}

/* Some steps release more than they take, and some fill more than either. */
static void step(pair *p, uint64_t *random, bool fills)
{
    uint32_t dice = random_below(random, 100);

    p->time += random_below(random, 3);
    if (has_room(p) && dice < (fills ? 60u : 25u))
        admit(p, 1 + random_below(random, p->longest));
    else if (p->n > 0 && (p->n_taken == 0 || dice < 80))
        take_any(p, random);
    else if (p->n_taken > 0)
        release(p, random_below(random, p->n_taken));
    compare(p);
}

static void run(uint32_t size, uint32_t spare, uint32_t longest,
                uint64_t random)
{
    pair p = open_pair(size, spare, longest);

    compare(&p);
    for (int i = 0; i < 300; i++)
        step(&p, &random, i / 50 % 2 == 0);
    while (p.n > 0) {
        take_any(&p, &random);
        compare(&p);
    }
    while (p.n_taken > 0)
        release(&p, random_below(&random, p.n_taken));
    while (has_room(&p))
        admit(&p, 1 + random_below(&random, longest));
    assert_int_equal(p.n, size);
    compare(&p);
    close_pair(&p);
}

static void test_random(void **state)
{
    static const uint32_t sizes[] = {1, 2, 3, 7, 20, 64};
    static const uint32_t longest[] = {1, 2, 5, 63, 64, 70};
    static const uint32_t spare[] = {0, 1, 5};

    for (size_t s = 0; s < COUNT(sizes); s++)
        for (size_t l = 0; l < COUNT(longest); l++)
            for (size_t k = 0; k < COUNT(spare); k++)
                run(sizes[s], spare[k], longest[l],
                    1 + s * 100 + l * 10 + k);
}

/* Times near the end of the clock, and token counts beyond 32 bits. */
static void test_greatest_numbers(void **state)
{
    enum { SIZE = 300 };
    uint64_t tokens = UINT64_C(300) * PS_MAX_CAPACITY;
    ps_window w;
    ps_mem mem = {0};
    uint32_t slot;

    ps_window_init(&w, SIZE, 1, PS_MAX_CAPACITY, &mem);
    assert_false(mem.failed);
    for (uint32_t i = 0; i < SIZE; i++)
        slot = ps_window_admit(&w, PS_MAX_CAPACITY, UINT64_MAX - SIZE + i);
    assert_true(w.count == w.size);
    assert_true(ps_window_is_full(&w));
    assert_true(w.tokens == tokens);
    assert_true(w.slots[slot].time == UINT64_MAX - 1);
    slot = ps_window_take(&w, PS_MAX_CAPACITY);
    assert_true(w.slots[slot].time == UINT64_MAX - SIZE);
    assert_true(w.tokens == tokens - PS_MAX_CAPACITY);
    ps_window_destroy(&w);
}

/* Full by tokens only with enough sequences, or by sequences alone. */
static void test_full(void **state)
{
    ps_window w;
    ps_mem mem = {0};

    ps_window_init(&w, 6, 0, 100, &mem);
    assert_false(mem.failed);
    w.least = 3;
    w.enough = 50;
    (void)ps_window_admit(&w, 100, 1);
    (void)ps_window_admit(&w, 100, 2);
    assert_false(ps_window_is_full(&w));
    (void)ps_window_admit(&w, 1, 3);
    assert_true(ps_window_is_full(&w));
    ps_window_release(&w, ps_window_take(&w, 100));
    ps_window_release(&w, ps_window_take(&w, 100));
    for (uint64_t i = 0; i < 5; i++) {
        assert_false(ps_window_is_full(&w));
        (void)ps_window_admit(&w, 1, 4 + i);
    }
    assert_true(ps_window_is_full(&w));
    ps_window_release(&w, ps_window_take(&w, 1));
    (void)ps_window_admit(&w, 45, 9);
    assert_true(ps_window_is_full(&w));
    ps_window_release(&w, ps_window_take(&w, 1));
    assert_false(ps_window_is_full(&w)); /* 49 tokens */
    ps_window_destroy(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_greatest_numbers),
        cmocka_unit_test(test_full),
    };

    return run_as_tap("window", tests, NULL);
}
