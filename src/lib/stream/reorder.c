/*
 * reorder.c - binary heap of pieces, ordered by id and offset in the sequence.
 *
 * SPDX-License-Identifier: MIT
 */

#include "stream/reorder.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"

#define MIN_ITEMS 256

static bool is_before(const ps_waiting *a, const ps_waiting *b)
{
    return a->id != b->id ? a->id < b->id : a->seq_off < b->seq_off;
}

ps_result ps_reorder_push(ps_reorder *heap, const ps_waiting *item,
                          ps_error *err)
{
    size_t at = heap->count;
    ps_waiting *items =
        ps_array_grow(heap->items, &heap->capacity, heap->count + 1, MIN_ITEMS,
                      sizeof *items);

    if (items == NULL)
        return ps_fail_memory(err);
    heap->items = items;
    heap->count++;
    heap->tokens += item->n_tok;
    heap->bytes += item->payload_bytes;
    while (at > 0 && is_before(item, &heap->items[(at - 1) / 2])) {
        heap->items[at] = heap->items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->items[at] = *item;
    return PS_OK;
}

const ps_waiting *ps_reorder_top(const ps_reorder *heap)
{
    return heap->count > 0 ? &heap->items[0] : NULL;
}

ps_waiting ps_reorder_pop(ps_reorder *heap)
{
    ps_waiting top = heap->items[0];
    const ps_waiting last = heap->items[--heap->count];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;

        if (child >= heap->count)
            break;
        if (child + 1 < heap->count &&
            is_before(&heap->items[child + 1], &heap->items[child]))
            child++;
        if (!is_before(&heap->items[child], &last))
            break;
        heap->items[at] = heap->items[child];
        at = child;
    }
    heap->items[at] = last;
    heap->tokens -= top.n_tok;
    heap->bytes -= top.payload_bytes;
    return top;
}

void ps_reorder_clear(ps_reorder *heap)
{
    for (size_t i = 0; i < heap->count; i++)
        free(heap->items[i].payload);
    free(heap->items);
    *heap = (ps_reorder){0};
}
