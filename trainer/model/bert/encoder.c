/*
 * encoder.c - an encoder layer.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model/bert/encoder.h"

#include "model/bert/dropout_sites.h"

/* The parameters of a layer. */
typedef struct layer_parts {
    tr_linear qkv;
    tr_linear out;
    tr_norm attention;
    tr_linear up;
    tr_linear down;
    tr_norm output;
} layer_parts;

static tr_linear linear_at(const tr_params *params, uint32_t layer,
                           size_t weight, size_t bias, size_t times)
{
    return tr_params_linear(params, bert_params_layer(layer, weight),
                            bert_params_layer(layer, bias), times);
}

static tr_norm norm_at(const tr_params *params, uint32_t layer,
                       size_t gain, size_t bias)
{
    return bert_params_norm(params, bert_params_layer(layer, gain),
                            bert_params_layer(layer, bias));
}

static layer_parts parts_of(const tr_params *p, uint32_t l)
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

static tr_attend attend_of(const tr_pass *pass, uint32_t layer)
{
    const bert_activations *const a = bert_kept(pass);

    return (tr_attend){
        .batch = pass->batch,
        .heads = pass->config->heads,
        .kv_heads = pass->config->heads,
        .width = pass->config->hidden / pass->config->heads,
        .dense = pass->attention == TR_DENSE,
        .dropout = pass->dropout,
        .site = bert_dropout_site(layer, BERT_SITE_SCORES),
        .kept = a->layer[layer].attend,
        .scratch = a->scratch.attention};
}

static void forward_attention(const tr_pass *pass, uint32_t layer,
                              const layer_parts *parts, const void *x)
{
    const tr_ops *const ops = pass->ops;
    tr_device *const d = pass->device;
    const size_t rows = pass->batch->n_rows;
    const bert_layer_kept *const k = bert_kept(pass)->layer + layer;
    void *const branch = bert_kept(pass)->scratch.d_sum;
    const tr_attend attend = attend_of(pass, layer);

    ops->linear_forward(d, &parts->qkv, rows, x, true, k->qkv);
    ops->attention_forward(d, &attend, k->qkv, k->context);
    ops->linear_forward(d, &parts->out, rows, k->context, false, branch);
    ops->sum_norm_forward(d, &parts->attention, rows, x, branch,
                          parts->out.bias, &pass->dropout,
                          bert_dropout_site(layer, BERT_SITE_ATTENTION),
                          &k->attention, k->middle);
}

static void forward_network(const tr_pass *pass, uint32_t layer,
                            const layer_parts *parts)
{
    const tr_ops *const ops = pass->ops;
    tr_device *const d = pass->device;
    const size_t rows = pass->batch->n_rows;
    const bert_layer_kept *const k = bert_kept(pass)->layer + layer;
    void *const branch = bert_kept(pass)->scratch.d_sum;

    ops->linear_gelu_forward(d, &parts->up, pass->config->activation, rows,
                             k->middle, k->up, k->gelu);
    ops->linear_forward(d, &parts->down, rows, k->gelu, false, branch);
    ops->sum_norm_forward(d, &parts->output, rows, k->middle, branch,
                          parts->down.bias, &pass->dropout,
                          bert_dropout_site(layer, BERT_SITE_OUTPUT),
                          &k->output, k->out);
}

void bert_encoder_forward(const tr_pass *pass, uint32_t layer,
                          const void *x)
{
    const layer_parts parts = parts_of(pass->params, layer);

    forward_attention(pass, layer, &parts, x);
    forward_network(pass, layer, &parts);
}

/*
 * Computes d_sum, the gradient of the feed-forward network's input, from d_x,
 * the gradient of its output.
 */
static void backward_network(const tr_pass *pass, uint32_t layer,
                             const layer_parts *parts)
{
    const tr_ops *const ops = pass->ops;
    tr_device *const d = pass->device;
    const size_t rows = pass->batch->n_rows;
    const bert_layer_kept *const k = bert_kept(pass)->layer + layer;
    const bert_scratch *const s = &bert_kept(pass)->scratch;
    const void *const d_branch = pass->dropout.threshold ? s->d_branch
                                                         : s->d_sum;

    ops->norm_backward(
        d, &parts->output, rows, &k->output, s->d_x, &pass->dropout,
        bert_dropout_site(layer, BERT_SITE_OUTPUT), s->d_sum, s->d_branch);
    ops->linear_gelu_backward(d, &parts->down, pass->config->activation, rows,
                              d_branch, k->up, s->d_wide);
    ops->linear_backward_weight(d, &parts->down, rows, d_branch, k->gelu);
    ops->linear_backward_weight(d, &parts->up, rows, s->d_wide, k->middle);
    ops->linear_backward_input(d, &parts->up, rows, s->d_wide, 1, s->d_sum);
}

/*
 * Computes d_x, the gradient of the layer's input, from d_sum, the gradient of
 * the attention block's normalised output.
 */
static void backward_attention(const tr_pass *pass, uint32_t layer,
                               const layer_parts *parts, const void *x)
{
    const tr_ops *const ops = pass->ops;
    tr_device *const d = pass->device;
    const size_t rows = pass->batch->n_rows;
    const bert_layer_kept *const k = bert_kept(pass)->layer + layer;
    const bert_scratch *const s = &bert_kept(pass)->scratch;
    const tr_attend attend = attend_of(pass, layer);
    const void *const d_branch = pass->dropout.threshold ? s->d_branch
                                                         : s->d_x;

    ops->norm_backward(
        d, &parts->attention, rows, &k->attention, s->d_sum, &pass->dropout,
        bert_dropout_site(layer, BERT_SITE_ATTENTION), s->d_x, s->d_branch);
    ops->linear_backward_weight(d, &parts->out, rows, d_branch, k->context);
    ops->linear_backward_input(d, &parts->out, rows, d_branch, 0, s->d_sum);
    ops->attention_backward(d, &attend, k->qkv, k->context, s->d_sum,
                            s->d_qkv);
    ops->linear_backward_weight(d, &parts->qkv, rows, s->d_qkv, x);
    ops->linear_backward_input(d, &parts->qkv, rows, s->d_qkv, 1, s->d_x);
}

void bert_encoder_backward(const tr_pass *pass, uint32_t layer,
                           const void *x)
{
    const layer_parts parts = parts_of(pass->params, layer);

    backward_network(pass, layer, &parts);
    backward_attention(pass, layer, &parts, x);
}
