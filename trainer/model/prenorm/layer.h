/*
 * layer.h - a pre-norm layer: attention, then a gated feed-forward network,
 * each added to the residual stream.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PRENORM_LAYER_H
#define PRENORM_LAYER_H

#include "model/prenorm/activations.h"
#include "model/prenorm/params.h"

/*
 * A layer adds `branch`, the output of the block before it, to the residual
 * stream; afterwards, `branch` is the output of the layer's last block.  The
 * first layer adds nothing.
 */
void pre_layer_forward(const tr_pass *pass, uint32_t layer);

/* Computes a layer's activations again, from its x. */
void pre_layer_recompute(const tr_pass *pass, uint32_t layer);

/* Replaces d_x, the gradient of the stream after the layer, by the gradient of
 * the stream before it. */
void pre_layer_backward(const tr_pass *pass, uint32_t layer);

/* The head: the losses of all targets and, unless pass->evaluate is set, the
 * gradients of the head's weights and of its input. */
void pre_head_forward(const tr_pass *pass);

/* Sets `d_out`, the gradient of the final norm's output. */
void pre_head_backward(const tr_pass *pass, void *d_out);

/* A norm of the model: of a layer if `tensor` is from pre_params_layer. */
tr_norm pre_norm(const tr_pass *pass, size_t tensor);

/* The value at index i. */
static inline void *pre_value_at(const tr_pass *pass, void *values, size_t i)
{
    return (unsigned char *)values + i * pass->device->value_size;
}

#endif /* PRENORM_LAYER_H */
