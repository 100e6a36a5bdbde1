/*
 * window.c - the sequences admitted and not yet emitted.
 *
 * Sequences of a length wait in a queue, so the oldest of all is at the
 * head of its queue; what leaves, leaves from there.  A second chain links
 * all of them by age.  Admit and take touch a constant number of words.
 *
 * SPDX-License-Identifier: MIT
 */

#include "window.h"

#include <stdlib.h>

#include "bitset.h"
#include "error.h"

typedef struct slot {
    uint64_t time;
    uint32_t length;
    uint32_t next_of_length; /* or, of a free slot, the next free one */
    uint32_t older;
    uint32_t younger;
} slot;

typedef struct queue {
    uint32_t first;
    uint32_t last;
    uint32_t count;
} queue;

struct ps_window {
    slot *slots;
    queue *queues; /* by length */
    ps_bitset lengths;
    uint64_t tokens;
    uint32_t size;
    uint32_t count;
    uint32_t oldest;
    uint32_t youngest;
    uint32_t free;
};

static void link_free_slots(ps_window *w, size_t slots)
{
    for (size_t s = 0; s < slots; s++)
        w->slots[s].next_of_length =
            s + 1 < slots ? (uint32_t)(s + 1) : PS_NO_SLOT;
    w->free = 0;
}

ps_result ps_window_open(ps_window **window, uint32_t size, uint32_t spare,
                         uint32_t longest, ps_error *err)
{
    size_t slots = (size_t)size + spare;
    ps_window *w = calloc(1, sizeof *w);
    bool ok;

    *window = NULL;
    if (w == NULL)
        return ps_fail_memory(err);
    w->size = size;
    w->oldest = w->youngest = PS_NO_SLOT;
    w->slots = calloc(slots, sizeof *w->slots);
    w->queues = calloc((size_t)longest + 1, sizeof *w->queues);
    ok = ps_bitset_init(&w->lengths, longest);
    if (!ok || w->slots == NULL || w->queues == NULL) {
        ps_window_free(w);
        return ps_fail_memory(err);
    }
    link_free_slots(w, slots);
    *window = w;
    return PS_OK;
}

void ps_window_free(ps_window *w)
{
    if (w == NULL)
        return;
    free(w->slots);
    free(w->queues);
    ps_bitset_destroy(&w->lengths);
    free(w);
}

uint32_t ps_window_count(const ps_window *w)
{
    return w->count;
}

bool ps_window_full(const ps_window *w)
{
    return w->count == w->size;
}

uint32_t ps_window_oldest(const ps_window *w)
{
    return w->oldest;
}

uint32_t ps_window_oldest_of(const ps_window *w, uint32_t length)
{
    const queue *q = &w->queues[length];

    return q->count > 0 ? q->first : PS_NO_SLOT;
}

uint32_t ps_window_count_of(const ps_window *w, uint32_t length)
{
    return w->queues[length].count;
}

uint32_t ps_window_longest(const ps_window *w, uint32_t limit)
{
    uint32_t length;

    return ps_bitset_at_most(&w->lengths, limit, &length) ? length : 0;
}

uint32_t ps_window_length(const ps_window *w, uint32_t s)
{
    return w->slots[s].length;
}

uint64_t ps_window_time(const ps_window *w, uint32_t s)
{
    return w->slots[s].time;
}

uint64_t ps_window_tokens(const ps_window *w)
{
    return w->tokens;
}

uint32_t ps_window_admit(ps_window *w, uint32_t length, uint64_t time)
{
    uint32_t s = w->free;
    queue *q = &w->queues[length];

    w->free = w->slots[s].next_of_length;
    w->slots[s] = (slot){.time = time,
                         .length = length,
                         .next_of_length = PS_NO_SLOT,
                         .older = w->youngest,
                         .younger = PS_NO_SLOT};
    if (w->youngest == PS_NO_SLOT)
        w->oldest = s;
    else
        w->slots[w->youngest].younger = s;
    w->youngest = s;
    if (q->count++ == 0) {
        q->first = s;
        ps_bitset_add(&w->lengths, length);
    } else {
        w->slots[q->last].next_of_length = s;
    }
    q->last = s;
    w->tokens += length;
    w->count++;
    return s;
}

/* Takes a slot out of the chain by age. */
static void unlink_age(ps_window *w, const slot *s)
{
    if (s->older == PS_NO_SLOT)
        w->oldest = s->younger;
    else
        w->slots[s->older].younger = s->younger;
    if (s->younger == PS_NO_SLOT)
        w->youngest = s->older;
    else
        w->slots[s->younger].older = s->older;
}

uint32_t ps_window_take(ps_window *w, uint32_t length)
{
    queue *q = &w->queues[length];
    uint32_t s = q->first;

    q->first = w->slots[s].next_of_length;
    if (--q->count == 0)
        ps_bitset_remove(&w->lengths, length);
    unlink_age(w, &w->slots[s]);
    w->tokens -= length;
    w->count--;
    return s;
}

void ps_window_release(ps_window *w, uint32_t s)
{
    w->slots[s].next_of_length = w->free;
    w->free = s;
}
