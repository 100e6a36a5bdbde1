/*
 * unpad.h - a batch without padding that nobody has to compute.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_STRIP_H
#define BERT_STRIP_H

#include <stddef.h>

#include "model/batch.h"

/* Which rows of a batch are computed. */
typedef enum bert_rows {
    BERT_PADDED,   /* all of them */
    BERT_STRIPPED, /* of each pack as many as the fullest one has tokens */
    BERT_UNPADDED  /* those that hold tokens */
} bert_rows;

/* All zero at first. */
typedef struct bert_strip {
    bert_batch batch;
    int32_t *numbers; /* its arrays that are others than those of before */
    size_t room;
} bert_strip;

/*
 * Of a padded batch those rows; the other arrays are still the batch's own.
 * It is there until the next call.  NULL: no memory.
 */
const bert_batch *bert_strip_rows(bert_strip *s, const bert_batch *batch,
                                  bert_rows rows);
void bert_strip_free(bert_strip *s);

#endif /* BERT_STRIP_H */
