/*
 * embedding.h - what tokens are to the encoder: the sum of the vectors of
 * word, position and type, under layer norm and dropout.
 *
 * Positions are looked up like words, since in a pack they restart with each
 * sequence.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_EMBEDDING_H
#define BERT_EMBEDDING_H

#include "batch.h"
#include "dropout.h"
#include "layernorm.h"
#include "params.h"

/* y: n_rows x hidden */
void bert_embedding_forward(const bert_params *params,
                            const bert_batch *batch,
                            const bert_dropout *dropout,
                            const bert_norm_kept *kept, real *y);

/* Overwrites dy. */
void bert_embedding_backward(const bert_params *params,
                             const bert_batch *batch,
                             const bert_dropout *dropout,
                             const bert_norm_kept *kept, real *dy);

#endif /* BERT_EMBEDDING_H */
