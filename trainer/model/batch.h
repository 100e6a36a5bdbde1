/*
 * batch.h - the input of a training step: some packs, laid end to end.
 *
 * Every token position of the packs is a row, including padding: n_rows =
 * n_packs * L.  Rows attend to one another within a span.  Each sequence is a
 * span, and so is the padding at the end of a pack (a dummy sequence), so every
 * row belongs to exactly one span.  Dummy sequences are in no loss.  Such a
 * batch is padded; unpad.h removes rows of padding.
 *
 * The model only reads a batch and never owns it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_MODEL_BATCH_H
#define TR_MODEL_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "model/scalar.h"

typedef struct tr_batch {
    uint32_t n_packs;
    uint32_t capacity; /* L: rows of a pack; 0: packs differ */
    uint32_t n_rows;   /* n_packs * capacity, or the sum over packs */

    /* One entry a row. */
    const int32_t *token;    /* below vocab_size */
    const int32_t *type;     /* below types */
    const int32_t *position; /* 0, 1, ... in each span; below positions */
    const int32_t *segment;  /* in its pack, from 1; 0 in a dummy sequence */

    /* Spans: rows cu[i] up to, but without, cu[i + 1]; cu[n_spans] is n_rows,
     * and no span crosses from one pack into the next. */
    uint32_t n_spans;
    uint32_t max_span;
    const int32_t *cu; /* [n_spans + 1] */

    /* Sequences, without dummy sequences. */
    uint32_t n_seq;
    const int32_t *cls_row;   /* [n_seq] its first row */
    const int32_t *nsp_label; /* [n_seq] 0 or 1; -1: none */
    const real *nsp_weight;   /* [n_seq] 0 where the label is -1 */

    /* Masked tokens, in the order of their rows. */
    uint32_t n_mlm;
    const int32_t *mlm_row;   /* [n_mlm] */
    const int32_t *mlm_label; /* [n_mlm] the original token */
    const int32_t *mlm_seq;   /* [n_mlm] its sequence, below n_seq */
    const real *mlm_weight;   /* [n_mlm] its weight in the loss */

    /* [n_rows] The row in the padded batch of all ranks, which dropout depends
     * on; NULL: this is that batch. */
    const int32_t *place;

    /* Counts are rounded up, see bucket_pad.h; so are those of what a device
     * makes of the batch. */
    bool rounded;
} tr_batch;

#endif /* TR_MODEL_BATCH_H */
