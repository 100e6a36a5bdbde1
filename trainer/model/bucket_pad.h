/*
 * bucket_pad.h - a batch whose counts are rounded up, so that many steps have
 * the same ones.
 *
 * What is added is in no loss, and all its gradients are 0: rows of padding
 * behind the last pack, and masked tokens and sequences without a label, which
 * name rows that nothing else of their kind names.  Sums are those of the batch
 * up to their order.  What comes out hangs on the batch alone, not on those
 * before.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_MODEL_BUCKET_PAD_H
#define TR_MODEL_BUCKET_PAD_H

#include <stdbool.h>
#include <stddef.h>

#include "model/batch.h"

/* Multiples of these come out; there are never more masked tokens, or
 * sequences, than rows. */
#define TR_BUCKET_ROWS 256
#define TR_BUCKET_MLM 256
#define TR_BUCKET_SEQ 32

/* All zero at first. */
typedef struct tr_bucket_pad {
    tr_batch batch;
    void *block; /* its arrays that are others than those of before */
    size_t room;
} tr_bucket_pad;

static inline uint32_t tr_round_up(uint32_t n, uint32_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

/*
 * The other arrays are still the batch's own.  `rows`: they are rounded up,
 * too, which a batch with places has room for.  It is there until the next
 * call.  NULL: no memory.
 */
const tr_batch *tr_bucket_pad_batch(tr_bucket_pad *r, const tr_batch *batch,
                                    bool rows);
void tr_bucket_pad_free(tr_bucket_pad *r);

#endif /* TR_MODEL_BUCKET_PAD_H */
