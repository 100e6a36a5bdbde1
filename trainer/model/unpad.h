/*
 * unpad.h - a batch without padding that nobody has to compute.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_MODEL_UNPAD_H
#define TR_MODEL_UNPAD_H

#include <stddef.h>

#include "model/batch.h"

/* Which rows of a batch are computed. */
typedef enum tr_rows {
    TR_PADDED,   /* all of them */
    TR_STRIPPED, /* of each pack as many as the fullest one has tokens */
    TR_UNPADDED  /* those that hold tokens */
} tr_rows;

/* All zero at first. */
typedef struct tr_unpad {
    tr_batch batch;
    int32_t *numbers; /* its arrays that are others than those of before */
    size_t room;
} tr_unpad;

/*
 * Of a padded batch those rows; the other arrays are still the batch's own.
 * It is there until the next call.  NULL: no memory.
 */
const tr_batch *tr_unpad_rows(tr_unpad *s, const tr_batch *batch,
                              tr_rows rows);
void tr_unpad_free(tr_unpad *s);

#endif /* TR_MODEL_UNPAD_H */
