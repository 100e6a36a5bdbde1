/*
 * encoder.h - a layer of the encoder: attention, then a feed-forward
 * network, each with dropout, a residual around it and layer norm behind.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_ENCODER_H
#define BERT_ENCODER_H

#include "activations.h"
#include "attention.h"
#include "params.h"

/* What all layers of a step have in common. */
typedef struct bert_pass {
    const bert_params *params;
    const bert_config *config;
    const bert_batch *batch;
    bert_attention attention;
    bert_dropout dropout;
    bert_activations *activations;
} bert_pass;

/* x: n_rows x hidden, the output of the layer before. */
void bert_encoder_forward(const bert_pass *pass, uint32_t layer,
                          const real *x);

/* scratch.d_x, the gradient of the layer's output, becomes that of x. */
void bert_encoder_backward(const bert_pass *pass, uint32_t layer,
                           const real *x);

#endif /* BERT_ENCODER_H */
