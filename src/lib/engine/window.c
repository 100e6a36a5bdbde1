/*
 * window.c - the sequences admitted and not yet emitted.
 *
 * Opens and frees a window; what is done for each sequence is in window.h.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine/window.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"

static void link_free_slots(ps_window *w, size_t slots)
{
    for (size_t s = 0; s < slots; s++)
        w->slots[s].next_of_length =
            s + 1 < slots ? (uint32_t)(s + 1) : PS_NO_SLOT;
    w->free = 0;
}

static void allocate(ps_window *w, uint32_t longest, size_t slots,
                     ps_mem *mem)
{
    w->slots = ps_mem_alloc(mem, slots, sizeof *w->slots);
    w->queues = ps_mem_alloc(mem, (uint64_t)longest + 1, sizeof *w->queues);
    ps_bitset_init(&w->lengths, longest, mem);
}

uint64_t ps_window_bytes(uint32_t size, uint32_t spare, uint32_t longest)
{
    ps_mem mem = {.bytes = sizeof(ps_window), .counts = true};
    ps_window w;

    allocate(&w, longest, (size_t)size + spare, &mem);
    return mem.bytes;
}

ps_result ps_window_open(ps_window **window, uint32_t size, uint32_t spare,
                         uint32_t longest, ps_error *err)
{
    size_t slots = (size_t)size + spare;
    ps_window *w = calloc(1, sizeof *w);
    ps_mem mem = {0};

    *window = NULL;
    if (w == NULL)
        return ps_fail_memory(err);
    w->size = size;
    w->oldest = w->youngest = PS_NO_SLOT;
    allocate(w, longest, slots, &mem);
    if (mem.failed) {
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
