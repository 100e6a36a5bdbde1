/*
 * reorder.h - sequences that came early, waiting for their turn.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_STREAM_REORDER_H
#define LIB_STREAM_REORDER_H

#include "packstream.h"

/* A sequence or a piece, with a payload of its own from malloc. */
typedef struct ps_waiting {
    uint64_t id;
    uint32_t seq_off;
    uint32_t seq_len;
    uint32_t n_tok;
    unsigned char *payload;
    size_t payload_bytes;
} ps_waiting;

/* A heap: the smallest (id, seq_off) is on top. */
typedef struct ps_reorder {
    ps_waiting *items;
    size_t count;
    size_t capacity;
    uint64_t tokens; /* of all items */
    uint64_t bytes;  /* of their payloads */
} ps_reorder;

/* Adds an item.  If that succeeds, the heap owns its payload. */
ps_result ps_reorder_push(ps_reorder *heap, const ps_waiting *item,
                          ps_error *err);

/* The top, or NULL if the heap is empty. */
const ps_waiting *ps_reorder_top(const ps_reorder *heap);

/* Takes the top off a heap that is not empty; the caller owns its payload. */
ps_waiting ps_reorder_pop(ps_reorder *heap);

/* Frees everything. */
void ps_reorder_clear(ps_reorder *heap);

#endif
