/*
 * window.c - the sequences admitted and not yet in a pack.
 *
 * Functions called for every sequence are in window.h.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine/window.h"

#include <stdlib.h>

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

void ps_window_remove(ps_window *w, uint32_t slot)
{
    ps_window_queue *q = &w->queues[w->slots[slot].length];
    const uint32_t next = w->slots[slot].next_of_length;
    uint32_t before = q->first;

    if (before != slot) {
        while (w->slots[before].next_of_length != slot)
            before = w->slots[before].next_of_length;
        /* Move it to the head of its queue. */
        w->slots[before].next_of_length = next;
        if (q->last == slot)
            q->last = before;
        w->slots[slot].next_of_length = q->first;
        q->first = slot;
    }
    (void)ps_window_take(w, w->slots[slot].length);
}
