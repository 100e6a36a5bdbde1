/*
 * heads.h - what is trained on: masked tokens and next sentences.
 *
 * Both gather the rows that they need of the encoder's output, so that a pack
 * costs them no more than its sequences would by themselves.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_HEADS_H
#define BERT_HEADS_H

#include "activations.h"
#include "params.h"

/*
 * Each returns its part of the total and leaves the losses of its rows in
 * kept->loss, not weighted.
 */
double bert_mlm_forward(const bert_params *params, const bert_batch *batch,
                        const real *hidden, const bert_mlm_kept *kept);
double bert_nsp_forward(const bert_params *params, const bert_batch *batch,
                        const real *hidden, const bert_nsp_kept *kept);

/* Each adds to the gradient of the encoder's output; overwrites `kept`. */
void bert_mlm_backward(const bert_params *params, const bert_batch *batch,
                       const bert_mlm_kept *kept, real *d_hidden);
void bert_nsp_backward(const bert_params *params, const bert_batch *batch,
                       const bert_nsp_kept *kept, real *d_hidden);

/* rows[i] = x[index[i]], and its reverse, x[index[i]] += rows[i]. */
void bert_gather_rows(size_t n, size_t width, const int32_t *index,
                      const real *x, real *rows);
void bert_scatter_rows(size_t n, size_t width, const int32_t *index,
                       const real *rows, real *x);

#endif /* BERT_HEADS_H */
