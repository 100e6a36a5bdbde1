/*
 * batch.h - the input of a training step: packs laid end to end.
 *
 * Every token position of the packs is a row, including padding: n_rows =
 * n_packs * L.  A span is a range of rows that attend to each other: a
 * sequence, or the padding at the end of a pack (a dummy sequence), so every
 * row belongs to exactly one span.  Dummy sequences do not contribute to any
 * loss.  This layout is called padded; unpad.h removes the padding rows.
 *
 * The caller owns a batch; the model only reads it.
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
    uint32_t capacity; /* L, rows per pack; 0 if packs differ */
    uint32_t n_rows;   /* total over all packs */

    /* One entry per row. */
    const int32_t *token;    /* token ID, below vocab_size */
    const int32_t *type;     /* token type, below types */
    const int32_t *position; /* 0, 1, ... within each span; below positions */
    const int32_t *segment;  /* sequence number in the pack, from 1; 0: dummy */

    /* Span i consists of rows cu[i] to cu[i + 1] - 1; cu[n_spans] is n_rows.
     * No span crosses a pack boundary. */
    uint32_t n_spans;
    uint32_t max_span;
    const int32_t *cu; /* [n_spans + 1] */

    /* Sequences, excluding dummy sequences. */
    uint32_t n_seq;
    const int32_t *cls_row;   /* [n_seq] first row of each sequence */
    const int32_t *nsp_label; /* [n_seq] 0 or 1; -1 without a label */
    const real *nsp_weight;   /* [n_seq] loss weight; 0 without a label */

    /* Targets: masked tokens or, in causal models, tokens that have a next
     * token to predict, in row order. */
    uint32_t n_mlm;
    const int32_t *mlm_row;   /* [n_mlm] */
    const int32_t *mlm_label; /* [n_mlm] the token to predict */
    const int32_t *mlm_seq;   /* [n_mlm] index of its sequence, below n_seq */
    const real *mlm_weight;   /* [n_mlm] loss weight */

    /* [n_rows] row number in the padded batch of all ranks, for dropout.  NULL
     * if equal to the row's index. */
    const int32_t *place;

    /* True if counts are rounded up (bucket_pad.h).  A device then also rounds
     * up the counts that it derives from the batch. */
    bool rounded;

    /* [n_seq] the source of each sequence, or -1, for evaluation.  The host's,
     * also if the batch is staged; NULL if unknown. */
    const int32_t *source;
} tr_batch;

#endif /* TR_MODEL_BATCH_H */
