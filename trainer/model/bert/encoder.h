/*
 * encoder.h - an encoder layer: attention, then a feed-forward network, each
 * with dropout, a residual connection and layer norm.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_ENCODER_H
#define BERT_ENCODER_H

#include "model/bert/activations.h"
#include "model/bert/params.h"

/* x: n_rows x hidden, the output of the previous layer. */
void bert_encoder_forward(const tr_pass *pass, uint32_t layer,
                          const void *x);

/*
 * Replaces scratch.d_x, the gradient of the layer's output, by the gradient of
 * x.
 */
void bert_encoder_backward(const tr_pass *pass, uint32_t layer,
                           const void *x);

#endif /* BERT_ENCODER_H */
