/*
 * bucket_pad.h - round up the counts of a batch, so that many steps have the
 * same shape.
 *
 * It adds rows of padding after the last pack, and masked tokens and sequences
 * without a label, each in a row that no other entry of its kind uses.  The
 * added entries do not contribute to any loss and have zero gradients, so sums
 * differ only in the order of their terms.  The result depends on the batch
 * alone.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_MODEL_BUCKET_PAD_H
#define TR_MODEL_BUCKET_PAD_H

#include <stdbool.h>
#include <stddef.h>

#include "model/batch.h"

/* Counts are rounded up to multiples of these.  Masked tokens and sequences
 * never exceed the number of rows. */
#define TR_BUCKET_ROWS 256
#define TR_BUCKET_MLM 256
#define TR_BUCKET_SEQ 32

/* Zero-initialise before the first call. */
typedef struct tr_bucket_pad {
    tr_batch batch;
    void *block; /* the arrays of `batch` that differ from the input's */
    size_t room; /* size of `block`, in bytes */
} tr_bucket_pad;

static inline uint32_t tr_round_up(uint32_t n, uint32_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

/*
 * Returns the batch with its counts rounded up, or NULL if out of memory.  The
 * number of rows is rounded only if `rows` is set; the batch then needs
 * `place`.  The result is valid until the next call and shares unchanged arrays
 * with `batch`.
 */
const tr_batch *tr_bucket_pad_batch(tr_bucket_pad *r, const tr_batch *batch,
                                    bool rows);
void tr_bucket_pad_free(tr_bucket_pad *r);

#endif /* TR_MODEL_BUCKET_PAD_H */
