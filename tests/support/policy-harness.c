/*
 * policy-harness.c - a policy on its own window.
 *
 * SPDX-License-Identifier: MIT
 */

#include "policy-harness.h"

#include <stdlib.h>
#include <string.h>

#include "lib-fixture.h"

void open_stand(stand *s, const ps_policy_calls *calls,
                const ps_policy_setup *setup)
{
    ps_mem mem = {0};
    ps_error err;

    assert_true(setup->window_size <= MAX_SLOTS);
    *s = (stand){.calls = calls, .is = *setup};
    s->is.window = &s->window;
    s->is.max_window = setup->window_size;
    s->is.max_lengths = setup->capacity;
    if (s->is.max_delay == 0)
        s->is.max_delay = UINT64_MAX;
    ps_window_init(&s->window, setup->window_size, 0, setup->capacity, &mem);
    assert_false(mem.failed);
    assert_ok(calls->open(&s->state, &s->is, &err), &err);
}

void close_stand(stand *s)
{
    s->calls->free(s->state);
    ps_window_destroy(&s->window);
}

void admit(stand *s, uint32_t length)
{
    uint32_t slot = ps_window_admit(s->is.window, length, ++s->now);

    if (s->calls->admitted != NULL)
        s->calls->admitted(s->state, length);
    s->list[s->n++] = (entry){slot, length, s->now};
}

void admit_all(stand *s, const uint32_t *lengths, size_t n)
{
    for (size_t i = 0; i < n; i++)
        admit(s, lengths[i]);
}

bool is_ready(const stand *s)
{
    return s->calls->is_ready != NULL && s->calls->is_ready(s->state);
}

/* Removes a slot from the list; it must be the oldest of its length. */
static void take(stand *s, uint32_t slot)
{
    uint32_t at = 0;

    while (at < s->n && s->list[at].slot != slot)
        at++;
    assert_true(at < s->n);
    for (uint32_t i = 0; i < at; i++)
        assert_int_not_equal(s->list[i].length, s->list[at].length);
    s->pack[s->n_pack++] = s->list[at].length;
    if (s->list[at].time < s->pack_oldest)
        s->pack_oldest = s->list[at].time;
    s->n--;
    memmove(s->list + at, s->list + at + 1,
            (s->n - at) * sizeof s->list[0]);
    ps_window_release(s->is.window, slot);
}

void choose(stand *s, bool flush)
{
    uint32_t slots[MAX_SLOTS];
    uint32_t n = 0;
    uint64_t sum = 0;
    ps_error err;

    assert_ok(s->calls->choose(s->state, s->now, flush, slots, &n, &err),
              &err);
    assert_in_range(n, 1, s->is.depth);
    s->n_pack = 0;
    s->pack_oldest = UINT64_MAX;
    for (uint32_t i = 0; i < n; i++)
        take(s, slots[i]);
    for (uint32_t i = 0; i < n; i++)
        sum += s->pack[i];
    assert_true(sum <= s->is.capacity);
    assert_int_equal(s->is.window->count, s->n);
}

void assert_pack(const stand *s, const uint32_t *lengths, size_t n)
{
    assert_int_equal(s->n_pack, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(s->pack[i], lengths[i]);
}

static int by_length(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

void assert_sorted_pack(stand *s, const uint32_t *lengths, size_t n)
{
    qsort(s->pack, s->n_pack, sizeof s->pack[0], by_length);
    assert_pack(s, lengths, n);
}

uint32_t draw(uint32_t capacity, uint64_t *random, uint32_t flavour)
{
    uint32_t length = 1 + random_below(random, capacity);

    if (flavour == 1)
        length = 1 + length / 4;
    else if (flavour == 2)
        length = 1 + length / 7 * 7;
    return length <= capacity ? length : capacity;
}

void run_all(policy_run *run, const ps_policy_calls *calls,
             ps_policy_setup setup)
{
    static const uint32_t depths[] = {1, 2, 3, 4, 8, 64};
    static const uint32_t sizes[] = {1, 2, 5, 17, 40};

    for (uint32_t capacity = 1; capacity <= 70; capacity += 3)
        for (size_t d = 0; d < COUNT(depths) && depths[d] <= capacity; d++)
            for (size_t i = 0; i < COUNT(sizes); i++)
                for (uint32_t flavour = 0; flavour < 3; flavour++) {
                    setup.capacity = capacity;
                    setup.depth = depths[d];
                    setup.window_size = sizes[i];
                    run(calls, &setup, flavour);
                }
}

uint64_t seed_of(const ps_policy_setup *o)
{
    return 1 + o->capacity * 1000 + o->depth * 10 + o->window_size;
}
