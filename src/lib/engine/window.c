/*
 * window.c - the sequences admitted and not yet in a pack.
 *
 * Functions called for every sequence are in window.h.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine/window.h"

#include <stdlib.h>

/* Sequences of a length that are examined for their topic. */
#define TOPIC_DEPTH 64

void ps_window_init(ps_window *w, uint32_t size, uint32_t spare,
                    uint32_t max_length, ps_mem *mem)
{
    *w = (ps_window){.enough = UINT64_MAX,
                     .least = size,
                     .size = size,
                     .oldest = PS_NO_SLOT,
                     .youngest = PS_NO_SLOT,
                     .free = PS_NO_SLOT};
    w->slots = ps_mem_alloc(mem, (uint64_t)size + spare, sizeof *w->slots);
    w->queues = ps_mem_alloc(mem, (uint64_t)max_length + 1,
                             sizeof *w->queues);
    ps_bitset_init(&w->lengths, max_length, mem);
}

void ps_window_destroy(ps_window *w)
{
    free(w->slots);
    free(w->queues);
    ps_bitset_destroy(&w->lengths);
}

/*
 * Removes a sequence from its queue, in which `before` precedes it; PS_NO_SLOT:
 * it is the first.
 */
static void remove_after(ps_window *w, uint32_t before, uint32_t slot)
{
    ps_window_queue *q = &w->queues[w->slots[slot].length];

    if (before != PS_NO_SLOT) {
        /* Move it to the head of its queue. */
        w->slots[before].next_of_length = w->slots[slot].next_of_length;
        if (q->last == slot)
            q->last = before;
        w->slots[slot].next_of_length = q->first;
        q->first = slot;
    }
    (void)ps_window_take(w, w->slots[slot].length);
}

void ps_window_remove(ps_window *w, const uint32_t *slots, uint32_t n)
{
    uint32_t i = 0;

    while (i < n) {
        const uint32_t length = w->slots[slots[i]].length;
        uint32_t before = PS_NO_SLOT;
        uint32_t slot = w->queues[length].first;

        while (i < n && w->slots[slots[i]].length == length) {
            const uint32_t next = w->slots[slot].next_of_length;

            if (slot == slots[i]) {
                remove_after(w, before, slot);
                i++;
            } else {
                before = slot;
            }
            slot = next;
        }
    }
}

uint32_t ps_window_take_like(ps_window *w, uint32_t length,
                             const uint64_t *topics, uint64_t topic)
{
    uint32_t before = PS_NO_SLOT;
    uint32_t slot = w->queues[length].first;

    for (uint32_t i = 0; i < TOPIC_DEPTH && slot != PS_NO_SLOT; i++) {
        if (topics[slot] == topic) {
            remove_after(w, before, slot);
            return slot;
        }
        before = slot;
        slot = w->slots[slot].next_of_length;
    }
    return ps_window_take(w, length);
}
