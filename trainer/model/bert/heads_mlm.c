/*
 * heads_mlm.c - predict masked tokens: dense, GELU, layer norm, then the
 * transposed word embedding with a bias.
 *
 * The only large array is n_mlm x vocab_size; it holds logits, then softmax,
 * then the gradient.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model/bert/heads.h"

static tr_linear dense_of(const tr_params *p)
{
    return tr_params_linear(p, bert_params_back(p, BERT_TRANSFORM_WEIGHT),
                            bert_params_back(p, BERT_TRANSFORM_BIAS), 1);
}

static tr_norm norm_of(const tr_params *p)
{
    return bert_params_norm(p, bert_params_back(p, BERT_TRANSFORM_GAIN),
                            bert_params_back(p, BERT_TRANSFORM_SHIFT));
}

static tr_linear decoder_of(const tr_pass *pass)
{
    const tr_params *const p = pass->params;
    tr_linear decoder = tr_params_linear(
        p, BERT_WORD, bert_params_back(p, BERT_DECODER_BIAS), 1);

    decoder.stride = bert_kept(pass)->mlm.stride;
    return decoder;
}

/*
 * The decoder with `stride` columns: tensor cores compute a product much more
 * slowly unless its dimensions are multiples of 8.  The additional rows of the
 * weight are the first rows of the position table; cross_entropy() zeroes their
 * logits.
 */
static tr_linear rounded_decoder_of(const tr_pass *pass)
{
    tr_linear decoder = decoder_of(pass);

    decoder.out = decoder.stride;
    return decoder;
}

void bert_mlm_forward(const tr_pass *pass, const void *hidden)
{
    const tr_ops *const ops = pass->ops;
    tr_device *const d = pass->device;
    const tr_batch *const batch = pass->batch;
    const bert_mlm_kept *const k = &bert_kept(pass)->mlm;
    const tr_linear dense = dense_of(pass->params);
    const tr_norm norm = norm_of(pass->params);
    const tr_linear decoder = rounded_decoder_of(pass);
    const size_t n = batch->n_mlm;

    ops->gather_rows(d, n, dense.in, batch->mlm_row, hidden, k->in);
    ops->linear_gelu_forward(d, &dense, pass->config->activation, n, k->in,
                             k->dense, k->scratch);
    ops->norm_forward(d, &norm, n, k->scratch, &k->norm, k->out);
    ops->linear_forward(d, &decoder, n, k->out, true, k->logits);
    if (pass->evaluate)
        ops->compare_logits(d, n, pass->config->vocab_size, k->stride,
                            k->logits, batch->mlm_label, k->right);
    /* Replaces the logits by their gradient. */
    ops->cross_entropy(d, TR_LOSS_MLM, n,
                       pass->config->vocab_size, k->stride, k->logits,
                       batch->mlm_label, batch->mlm_weight, k->loss,
                       pass->params->adds);
}

void bert_mlm_backward(const tr_pass *pass, void *d_hidden)
{
    static const tr_dropout none = {.scale = 1};
    const tr_ops *const ops = pass->ops;
    tr_device *const d = pass->device;
    const tr_batch *const batch = pass->batch;
    const bert_mlm_kept *const k = &bert_kept(pass)->mlm;
    const tr_linear dense = dense_of(pass->params);
    const tr_norm norm = norm_of(pass->params);
    const tr_linear decoder = decoder_of(pass);
    const tr_linear rounded = rounded_decoder_of(pass);
    const size_t n = batch->n_mlm;
    void *const dx = k->scratch;

    ops->linear_backward_weight(d, &decoder, n, k->logits, k->out);
    ops->linear_backward_input(d, &rounded, n, k->logits, 0, dx);
    ops->norm_backward(d, &norm, n, &k->norm, dx, &none, 0, dx, NULL);
    ops->gelu_backward(d, pass->config->activation, n * dense.out, k->dense,
                       dx);
    ops->linear_backward_weight(d, &dense, n, dx, k->in);
    ops->linear_backward_input(d, &dense, n, dx, 0, k->out);
    ops->scatter_rows(d, n, dense.in, batch->mlm_row, k->out, d_hidden);
}
