/*
 * batch.h - the input of a training step: packs laid end to end.
 *
 * Every token position of the packs is a row, including padding: n_rows =
 * n_packs * L.  A span is a range of rows that attend to each other: a
 * sequence, or the padding at the end of a pack (a dummy sequence), so every
 * row belongs to exactly one span.  Dummy sequences are in no loss.  This
 * layout is called padded; unpad.h removes padding rows.
 *
 * The model reads batches and never owns them.
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
    uint32_t capacity; /* L: rows per pack; 0: varies */
    uint32_t n_rows;   /* n_packs * capacity, or the sum over packs */

    /* One entry per row. */
    const int32_t *token;    /* below vocab_size */
    const int32_t *type;     /* below types */
    const int32_t *position; /* 0, 1, ... within each span; below positions */
    const int32_t *segment;  /* within its pack, from 1; 0: dummy sequence */

    /* Span i is rows cu[i] to cu[i + 1] - 1; cu[n_spans] is n_rows.  No span
     * crosses a pack boundary. */
    uint32_t n_spans;
    uint32_t max_span;
    const int32_t *cu; /* [n_spans + 1] */

    /* Sequences, excluding dummy sequences. */
    uint32_t n_seq;
    const int32_t *cls_row;   /* [n_seq] first row */
    const int32_t *nsp_label; /* [n_seq] 0 or 1; -1: no label */
    const real *nsp_weight;   /* [n_seq] 0 without a label */

    /* Masked tokens, in row order. */
    uint32_t n_mlm;
    const int32_t *mlm_row;   /* [n_mlm] */
    const int32_t *mlm_label; /* [n_mlm] the original token */
    const int32_t *mlm_seq;   /* [n_mlm] its sequence, below n_seq */
    const real *mlm_weight;   /* [n_mlm] weight in the loss */

    /* [n_rows] row in the padded batch of all ranks, for dropout; NULL: the
     * row itself. */
    const int32_t *place;

    /* Counts are rounded up (bucket_pad.h), including those that a device
     * derives from the batch. */
    bool rounded;
} tr_batch;

#endif /* TR_MODEL_BATCH_H */
