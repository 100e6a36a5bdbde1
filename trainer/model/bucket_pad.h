/*
 * bucket_pad.h - round up the counts of a batch, so that the shapes of steps
 * repeat.
 *
 * Added entries are in no loss and have zero gradients: rows of padding after
 * the last pack, and masked tokens and sequences without a label, in rows that
 * no other entry of their kind uses.  Sums equal the batch's own except for
 * their order.  The result depends on the batch alone.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_MODEL_BUCKET_PAD_H
#define TR_MODEL_BUCKET_PAD_H

#include <stdbool.h>
#include <stddef.h>

#include "model/batch.h"

/* Counts are rounded up to these multiples; masked tokens and sequences at most
 * to the number of rows. */
#define TR_BUCKET_ROWS 256
#define TR_BUCKET_MLM 256
#define TR_BUCKET_SEQ 32

/* Zero-initialise. */
typedef struct tr_bucket_pad {
    tr_batch batch;
    void *block; /* the arrays of `batch` that differ from the input's */
    size_t room; /* bytes of `block` */
} tr_bucket_pad;

static inline uint32_t tr_round_up(uint32_t n, uint32_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

/*
 * Returns the batch with counts rounded up.  The number of rows is rounded only
 * if `rows` is set; the batch then needs `place`.  Valid until the next call;
 * unchanged arrays are shared with `batch`.  NULL: out of memory.
 */
const tr_batch *tr_bucket_pad_batch(tr_bucket_pad *r, const tr_batch *batch,
                                    bool rows);
void tr_bucket_pad_free(tr_bucket_pad *r);

#endif /* TR_MODEL_BUCKET_PAD_H */
