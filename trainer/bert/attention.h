/*
 * attention.h - each row looks at the rows of its own sequence.
 *
 * Two ways lead to the same numbers.  Varlen takes the spans one by one,
 * through cu: sum of len^2 of work, as in Zeng et al., "Boosting Distributed
 * Training Performance of the Unpadded BERT Model" (2022), section IV.A.
 * Dense computes all L x L scores of a pack and masks those between rows of
 * different segments: Krell et al. (2021), section 3.2.
 *
 * In both a block (a span or a pack) and a head are one piece of work; pieces
 * are shared out to threads, which do not touch one another's numbers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_ATTENTION_H
#define BERT_ATTENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "batch.h"
#include "dropout.h"
#include "model.h"

typedef struct bert_attend {
    const bert_batch *batch;
    size_t hidden;
    size_t heads;
    const bert_dropout *dropout;
    uint32_t site;
    const size_t *kept_at; /* [n_spans] varlen: where a span's scores are */
    real *scratch;         /* bert_varlen_scratch() numbers a thread */
    size_t scratch_size;
    int threads;
} bert_attend;

/* Softmax of scores that are kept for backward, in numbers; fills kept_at. */
size_t bert_varlen_kept(const bert_batch *batch, size_t heads,
                        size_t *kept_at);
size_t bert_dense_kept(const bert_batch *batch, size_t heads);

/* Numbers that a thread needs for itself. */
size_t bert_varlen_scratch(const bert_batch *batch);
size_t bert_dense_scratch(const bert_batch *batch);

/*
 * qkv: n_rows x 3 hidden, queries, keys and values side by side, in each of
 * which the heads lie side by side; kept: the softmax; out: n_rows x hidden.
 */
void bert_varlen_forward(const bert_attend *attend, const real *qkv,
                         real *kept, real *out);
void bert_varlen_backward(const bert_attend *attend, const real *qkv,
                          const real *kept, const real *d_out, real *d_qkv);
void bert_dense_forward(const bert_attend *attend, const real *qkv,
                        real *kept, real *out);
void bert_dense_backward(const bert_attend *attend, const real *qkv,
                         const real *kept, const real *d_out, real *d_qkv);

#endif /* BERT_ATTENTION_H */
