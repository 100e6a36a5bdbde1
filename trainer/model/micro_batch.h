/*
 * micro_batch.h - a part of a batch: some of its packs.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_MODEL_MICRO_BATCH_H
#define TR_MODEL_MICRO_BATCH_H

#include <stddef.h>

#include "model/batch.h"

typedef struct tr_micro_batch {
    tr_batch batch;
    int32_t *numbers; /* of its arrays */
    size_t room;      /* numbers that fit */
} tr_micro_batch;

/*
 * Returns packs `first` to first + n - 1 of a padded batch as a batch of their
 * own, valid until the next call; NULL if out of memory.  Rows keep their
 * places, and targets their weights, from the whole batch, so the gradients of
 * all parts add up to its gradient.
 */
const tr_batch *tr_micro_batch_of(tr_micro_batch *m, const tr_batch *padded,
                                  uint32_t first, uint32_t n);

void tr_micro_batch_free(tr_micro_batch *m);

#endif /* TR_MODEL_MICRO_BATCH_H */
