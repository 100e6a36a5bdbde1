/*
 * encoder.c - a layer of the encoder.
 *
 * SPDX-License-Identifier: MIT
 */
#include "encoder.h"

#include "gelu.h"
#include "sites.h"

/* A layer's parts. */
typedef struct layer_parts {
    bert_linear qkv;
    bert_linear out;
    bert_norm attention;
    bert_linear up;
    bert_linear down;
    bert_norm output;
} layer_parts;

static bert_linear linear_at(const bert_params *params, uint32_t layer,
                             size_t weight, size_t bias, size_t times)
{
    return bert_params_linear(params, bert_params_layer(layer, weight),
                              bert_params_layer(layer, bias), times);
}

static bert_norm norm_at(const bert_params *params, uint32_t layer,
                         size_t gain, size_t bias)
{
    return bert_params_norm(params, bert_params_layer(layer, gain),
                            bert_params_layer(layer, bias));
}

static layer_parts parts_of(const bert_params *p, uint32_t l)
{
    return (layer_parts){
        .qkv = linear_at(p, l, BERT_QUERY_WEIGHT, BERT_QUERY_BIAS, 3),
        .out = linear_at(p, l, BERT_OUT_WEIGHT, BERT_OUT_BIAS, 1),
        .attention = norm_at(p, l, BERT_ATTENTION_GAIN,
                             BERT_ATTENTION_BIAS),
        .up = linear_at(p, l, BERT_UP_WEIGHT, BERT_UP_BIAS, 1),
        .down = linear_at(p, l, BERT_DOWN_WEIGHT, BERT_DOWN_BIAS, 1),
        .output = norm_at(p, l, BERT_LAYER_GAIN, BERT_LAYER_BIAS)};
}

static bert_attend attend_of(const bert_pass *pass, uint32_t layer)
{
    const bert_activations *const a = pass->activations;

    return (bert_attend){
        .batch = pass->batch,
        .hidden = pass->config->hidden,
        .heads = pass->config->heads,
        .dropout = &pass->dropout,
        .site = bert_site(layer, BERT_SITE_SCORES),
        .kept_at = a->kept_at,
        .scratch = a->scratch.attention,
        .scratch_size = a->scratch.attention_size,
        .threads = a->scratch.threads};
}

static void forward_attention(const bert_pass *pass, uint32_t layer,
                              const layer_parts *parts, const real *x)
{
    const size_t rows = pass->batch->n_rows;
    const bert_layer_kept *const k = pass->activations->layer + layer;
    real *const branch = pass->activations->scratch.d_sum;
    const bert_attend attend = attend_of(pass, layer);

    bert_linear_forward(&parts->qkv, rows, x, k->qkv);
    if (pass->attention == BERT_DENSE)
        bert_dense_forward(&attend, k->qkv, k->softmax, k->context);
    else
        bert_varlen_forward(&attend, k->qkv, k->softmax, k->context);
    bert_linear_forward(&parts->out, rows, k->context, branch);
    bert_norm_forward_sum(&parts->attention, rows, x, branch, &pass->dropout,
                          bert_site(layer, BERT_SITE_ATTENTION),
                          &k->attention, k->middle);
}

static void forward_network(const bert_pass *pass, uint32_t layer,
                            const layer_parts *parts)
{
    const size_t rows = pass->batch->n_rows;
    const bert_layer_kept *const k = pass->activations->layer + layer;
    real *const branch = pass->activations->scratch.d_sum;
    real *const wide = pass->activations->scratch.wide;

    bert_linear_forward(&parts->up, rows, k->middle, k->up);
    bert_gelu_forward(rows, parts->up.out, k->up, wide);
    bert_linear_forward(&parts->down, rows, wide, branch);
    bert_norm_forward_sum(&parts->output, rows, k->middle, branch,
                          &pass->dropout,
                          bert_site(layer, BERT_SITE_OUTPUT), &k->output,
                          k->out);
}

void bert_encoder_forward(const bert_pass *pass, uint32_t layer,
                          const real *x)
{
    const layer_parts parts = parts_of(pass->params, layer);

    forward_attention(pass, layer, &parts, x);
    forward_network(pass, layer, &parts);
}

/* The gradient of a branch, given that of the sum that it is in. */
static const real *into_branch(const bert_pass *pass, uint32_t site,
                               const real *d_sum)
{
    real *const d_branch = pass->activations->scratch.d_branch;

    if (!pass->dropout.threshold)
        return d_sum;
    bert_dropout_rows(&pass->dropout, site, pass->batch->n_rows,
                      pass->config->hidden, d_sum, d_branch);
    return d_branch;
}

/* From d_x, of the output, to d_sum, of the network's input. */
static void backward_network(const bert_pass *pass, uint32_t layer,
                             const layer_parts *parts)
{
    const size_t rows = pass->batch->n_rows;
    const bert_layer_kept *const k = pass->activations->layer + layer;
    const bert_scratch *const s = &pass->activations->scratch;
    const real *d_branch;

    bert_norm_backward(&parts->output, rows, &k->output, s->d_x, s->d_sum);
    d_branch = into_branch(pass, bert_site(layer, BERT_SITE_OUTPUT),
                           s->d_sum);
    bert_linear_backward_input(&parts->down, rows, d_branch, 0, s->d_wide);
    bert_gelu_backward(rows, parts->up.out, k->up, s->d_wide, s->wide);
    bert_linear_backward_weight(&parts->down, rows, d_branch, s->wide);
    bert_linear_backward_weight(&parts->up, rows, s->d_wide, k->middle);
    bert_linear_backward_input(&parts->up, rows, s->d_wide, 1, s->d_sum);
}

/* From d_sum, of attention's output under the norm, to d_x. */
static void backward_attention(const bert_pass *pass, uint32_t layer,
                               const layer_parts *parts, const real *x)
{
    const size_t rows = pass->batch->n_rows;
    const bert_layer_kept *const k = pass->activations->layer + layer;
    const bert_scratch *const s = &pass->activations->scratch;
    const bert_attend attend = attend_of(pass, layer);
    const real *d_branch;

    bert_norm_backward(&parts->attention, rows, &k->attention, s->d_sum,
                       s->d_x);
    d_branch = into_branch(pass, bert_site(layer, BERT_SITE_ATTENTION),
                           s->d_x);
    bert_linear_backward_weight(&parts->out, rows, d_branch, k->context);
    bert_linear_backward_input(&parts->out, rows, d_branch, 0, s->d_sum);
    if (pass->attention == BERT_DENSE)
        bert_dense_backward(&attend, k->qkv, k->softmax, s->d_sum, s->d_qkv);
    else
        bert_varlen_backward(&attend, k->qkv, k->softmax, s->d_sum,
                             s->d_qkv);
    bert_linear_backward_weight(&parts->qkv, rows, s->d_qkv, x);
    bert_linear_backward_input(&parts->qkv, rows, s->d_qkv, 1, s->d_x);
}

void bert_encoder_backward(const bert_pass *pass, uint32_t layer,
                           const real *x)
{
    const layer_parts parts = parts_of(pass->params, layer);

    backward_network(pass, layer, &parts);
    backward_attention(pass, layer, &parts, x);
}
