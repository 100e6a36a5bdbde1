/*
 * head.c - predict the next token, or masked tokens.
 *
 * The decoder is applied to chunks of targets.  A chunk's logits are replaced
 * by their gradient and used at once for the gradients of the weights and of
 * the decoder's input, so no more than a chunk's logits exist (as in Hsu et
 * al., "Liger Kernel", 2024).
 *
 * SPDX-License-Identifier: MIT
 */
#include "model/prenorm/layer.h"

static size_t find(const tr_pass *pass, pre_tensor which)
{
    return pre_params_find(pass->params, pass->config, which);
}

static tr_linear decoder_of(const tr_pass *pass)
{
    tr_linear decoder = tr_params_linear(
        pass->params, find(pass, pass->config->tied ? PRE_WORD : PRE_HEAD),
        find(pass, PRE_HEAD_BIAS), 1);

    decoder.stride = pre_kept(pass)->head.stride;
    return decoder;
}

static tr_linear dense_of(const tr_pass *pass)
{
    return tr_params_linear(pass->params, find(pass, PRE_DENSE), TR_NO_TENSOR,
                            1);
}

static bool has_dense(const tr_pass *pass)
{
    return pass->config->family == TR_MODERNBERT;
}

/* ---- Forward ---- */

/* Decodes targets `first` to first + n - 1, and replaces their rows of k->out
 * by the gradient. */
static void decode(const tr_pass *pass, const tr_linear *decoder, size_t first,
                   size_t n)
{
    const tr_ops *const ops = pass->ops;
    tr_device *const d = pass->device;
    const tr_batch *const batch = pass->batch;
    const pre_head_kept *const k = &pre_kept(pass)->head;
    void *const x = pre_value_at(pass, k->out, first * decoder->in);

    ops->linear_forward(d, decoder, n, x, decoder->bias != NULL, k->logits);
    if (pass->evaluate)
        ops->compare_logits(d, n, decoder->out, k->stride, k->logits,
                            batch->mlm_label + first, k->right + first);
    ops->cross_entropy(d, TR_LOSS_MLM, n, decoder->out, k->stride, k->logits,
                       batch->mlm_label + first, batch->mlm_weight + first,
                       k->loss + first, decoder->adds);
    if (pass->evaluate)
        return;
    ops->linear_backward_weight(d, decoder, n, k->logits, x);
    ops->linear_backward_input(d, decoder, n, k->logits, 0, x);
}

void pre_head_forward(const tr_pass *pass)
{
    const tr_ops *const ops = pass->ops;
    tr_device *const d = pass->device;
    const pre_activations *const a = pre_kept(pass);
    const pre_head_kept *const k = &a->head;
    tr_linear decoder = decoder_of(pass);
    const size_t n = pass->batch->n_mlm;
    size_t first = 0;

    ops->gather_rows(d, n, decoder.in, pass->batch->mlm_row, a->out,
                     has_dense(pass) ? k->in : k->out);
    if (has_dense(pass)) {
        const tr_linear dense = dense_of(pass);
        const tr_norm norm = pre_norm(pass, find(pass, PRE_DENSE_NORM));

        ops->linear_gelu_forward(d, &dense, pass->config->activation, n, k->in,
                                 k->dense, k->active);
        ops->norm_forward(d, &norm, n, k->active, &k->norm, k->out);
    }
    /* Without targets, this sets the loss and the gradients to 0. */
    do {
        const size_t rows = n - first < k->chunk ? n - first : k->chunk;

        decode(pass, &decoder, first, rows);
        first += rows;
        decoder.adds = true;
    } while (first < n);
}

/* ---- Backward ---- */

void pre_head_backward(const tr_pass *pass, void *d_out)
{
    static const tr_dropout none = {.scale = 1};
    const tr_ops *const ops = pass->ops;
    tr_device *const d = pass->device;
    const tr_batch *const batch = pass->batch;
    const pre_head_kept *const k = &pre_kept(pass)->head;
    const size_t n = batch->n_mlm;
    const size_t hidden = pass->config->hidden;
    void *dx = k->out;

    if (has_dense(pass)) {
        const tr_linear dense = dense_of(pass);
        const tr_norm norm = pre_norm(pass, find(pass, PRE_DENSE_NORM));

        ops->norm_backward(d, &norm, n, &k->norm, dx, &none, 0, dx, NULL);
        ops->gelu_backward(d, pass->config->activation, n * hidden, k->dense,
                           dx);
        ops->linear_backward_weight(d, &dense, n, dx, k->in);
        ops->linear_backward_input(d, &dense, n, dx, 0, k->active);
        dx = k->active;
    }
    ops->fill(d, d_out, 0,
              (size_t)batch->n_rows * hidden * pass->device->value_size);
    ops->scatter_rows(d, n, hidden, batch->mlm_row, dx, d_out);
}
