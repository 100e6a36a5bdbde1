/*
 * unpad.h - remove rows of padding from a batch.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_MODEL_UNPAD_H
#define TR_MODEL_UNPAD_H

#include <stddef.h>

#include "model/batch.h"

/* Selects the rows of a batch that are computed. */
typedef enum tr_rows {
    TR_PADDED,   /* all */
    TR_STRIPPED, /* in each pack, as many as the fullest pack has tokens */
    TR_UNPADDED  /* only rows that hold tokens */
} tr_rows;

/* Zero-initialise before the first call. */
typedef struct tr_unpad {
    tr_batch batch;
    int32_t *numbers; /* the arrays of `batch` that differ from the input's */
    size_t room; /* capacity of `numbers` */
} tr_unpad;

/*
 * Reduces a padded batch to `rows`.  The result is valid until the next call
 * and shares unchanged arrays with `batch`.  Returns NULL if out of memory.
 */
const tr_batch *tr_unpad_rows(tr_unpad *s, const tr_batch *batch, tr_rows rows);
void tr_unpad_free(tr_unpad *s);

#endif /* TR_MODEL_UNPAD_H */
