/*
 * reorder.h - sequences held back because they arrived early.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_STREAM_REORDER_H
#define LIB_STREAM_REORDER_H

#include "packstream.h"

/* A sequence, or a piece of a split sequence. */
typedef struct ps_waiting {
    uint64_t id;            /* id of the sequence in its stream */
    uint32_t seq_off;       /* as in ps_piece */
    uint32_t seq_len;       /* as in ps_piece */
    uint32_t n_tok;         /* tokens of the piece */
    unsigned char *payload; /* allocated by malloc; owned */
    size_t payload_bytes;
} ps_waiting;

/* A heap with the smallest (id, seq_off) on top. */
typedef struct ps_reorder {
    ps_waiting *items;
    size_t count; /* number of items */
    size_t capacity;
    uint64_t tokens; /* sum of n_tok of all items */
    uint64_t bytes;  /* sum of payload_bytes of all items */
} ps_reorder;

/*
 * Adds an item.  On success the heap owns its payload.  PS_OK, PS_ERR_MEMORY.
 */
ps_result ps_reorder_push(ps_reorder *heap, const ps_waiting *item,
                          ps_error *err);

/* The top item, or NULL if the heap is empty. */
const ps_waiting *ps_reorder_top(const ps_reorder *heap);

/* Removes the top item of a nonempty heap.  The caller owns its payload. */
ps_waiting ps_reorder_pop(ps_reorder *heap);

/* Frees all items and payloads. */
void ps_reorder_clear(ps_reorder *heap);

#endif
