/*
 * carve.h - lay out arrays in one block of device memory.
 *
 * Arrays are laid out twice: first without a block, to compute its size, and
 * then in the block.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_MODEL_CARVE_H
#define TR_MODEL_CARVE_H

#include "model/ops.h"

typedef struct tr_carve {
    unsigned char *block; /* NULL in the first layout */
    size_t used;          /* bytes */
    size_t value;         /* bytes per value */
    size_t scratch;       /* start of the arrays that only backward uses */
    bool too_large;
} tr_carve;

/* Each returns the array's address, or NULL in the first layout. */
void *tr_carve_bytes(tr_carve *carve, size_t bytes);
void *tr_carve_values(tr_carve *carve, size_t rows, size_t columns);
void tr_carve_norm(tr_carve *carve, tr_norm_kept *norm, size_t rows,
                   size_t columns);

/* Row stride of logits, in values. */
size_t tr_carve_stride(const tr_carve *carve, size_t columns);

/* A block of device memory that grows. */
typedef struct tr_block_room {
    tr_device *device;
    unsigned char *block;
    size_t room; /* bytes */
} tr_block_room;

/*
 * Grows the block to at least `bytes`; its contents are lost.  It grows by half
 * its size if memory allows, so that slowly growing batches seldom cause a
 * reallocation.  Returns false if out of memory.
 */
bool tr_block_room_fit(tr_block_room *r, size_t bytes);
void tr_block_room_free(tr_block_room *r);

#endif /* TR_MODEL_CARVE_H */
