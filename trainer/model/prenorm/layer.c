/*
 * layer.c - a pre-norm layer.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model/prenorm/layer.h"

/* The parameters of a layer. */
typedef struct layer_parts {
    bool has_norm; /* false: the embedding is the input of attention */
    tr_norm attention;
    tr_linear qkv;
    tr_linear out;
    tr_norm network;
    tr_linear gate;
    tr_linear down;
} layer_parts;

tr_norm pre_norm(const tr_pass *pass, size_t tensor)
{
    tr_norm norm = tr_params_norm(pass->params, tensor, TR_NO_TENSOR,
                                  pass->config->epsilon);

    norm.rms = pass->config->family == TR_LLAMA;
    return norm;
}

static size_t find(const tr_pass *pass, uint32_t layer, pre_tensor which)
{
    return pre_params_layer(pass->params, pass->config, layer, which);
}

static layer_parts parts_of(const tr_pass *pass, uint32_t layer)
{
    const tr_params *const p = pass->params;
    /* Llama's folders store Q, K and V as separate tensors, and so gate and
     * up. */
    const bool split = pass->config->family == TR_LLAMA;
    const size_t norm = find(pass, layer, PRE_ATTENTION_NORM);
    layer_parts parts = {
        .has_norm = norm != TR_NO_TENSOR,
        .qkv = tr_params_linear(p, find(pass, layer, PRE_QKV),
                                find(pass, layer, PRE_QKV_BIAS),
                                split ? 3 : 1),
        .out = tr_params_linear(p, find(pass, layer, PRE_OUT), TR_NO_TENSOR,
                                1),
        .network = pre_norm(pass, find(pass, layer, PRE_NETWORK_NORM)),
        .gate = tr_params_linear(p, find(pass, layer, PRE_GATE), TR_NO_TENSOR,
                                 split ? 2 : 1),
        .down = tr_params_linear(p, find(pass, layer, PRE_DOWN), TR_NO_TENSOR,
                                 1)};

    if (parts.has_norm)
        parts.attention = pre_norm(pass, norm);
    return parts;
}

static tr_attend attend_of(const tr_pass *pass, uint32_t layer)
{
    const pre_activations *const a = pre_kept(pass);
    tr_attend attend = pre_attend(pass->config, pass->batch, layer,
                                  pass->attention == TR_DENSE);

    attend.kept = a->layer[layer].attend;
    attend.scratch = a->scratch.attention;
    return attend;
}

/* Queries and keys are turned, values are not. */
static tr_rotary rotary_of(const tr_pass *pass, uint32_t layer)
{
    const tr_config *const c = pass->config;

    return (tr_rotary){
        .heads = (size_t)c->heads + c->kv_heads,
        .width = c->head_width,
        .stride = ((size_t)c->heads + 2 * (size_t)c->kv_heads) * c->head_width,
        .frequency = pre_kept(pass)->frequency[c->windowed[layer]]};
}

/* The input of attention's products. */
static const void *input_of(const pre_layer_kept *k, const layer_parts *parts)
{
    return parts->has_norm ? k->in : k->x;
}

/* Calls head_norm_forward() or head_norm_backward() for the heads of queries
 * and of keys, which are at the start of rows of `qkv`. */
static void norm_heads(const tr_pass *pass, uint32_t layer, bool back,
                       void *qkv)
{
    const tr_config *const c = pass->config;
    const pre_layer_kept *const k = pre_kept(pass)->layer + layer;
    const tr_norm_kept *const kept[] = {&k->queries, &k->keys};
    const size_t tensors[] = {find(pass, layer, PRE_QUERY_NORM),
                              find(pass, layer, PRE_KEY_NORM)};
    const size_t heads[] = {c->heads, c->kv_heads};
    const size_t stride = (heads[0] + 2 * heads[1]) * c->head_width;

    for (int i = 0; c->qk_norm && i < 2; i++) {
        const tr_norm norm = pre_norm(pass, tensors[i]);
        void *const at = pre_value_at(pass, qkv,
                                      i ? heads[0] * c->head_width : 0);

        (back ? pass->ops->head_norm_backward : pass->ops->head_norm_forward)(
            pass->device, &norm, pass->batch->n_rows, heads[i], stride,
            kept[i], at);
    }
}

/* ---- Forward ---- */

/* `branch` is what to add to the stream before the layer, or NULL. */
static void forward_attention(const tr_pass *pass, uint32_t layer,
                              const layer_parts *parts, const void *branch)
{
    const tr_ops *const ops = pass->ops;
    tr_device *const d = pass->device;
    const size_t rows = pass->batch->n_rows;
    pre_activations *const a = pre_kept(pass);
    const pre_layer_kept *const k = a->layer + layer;
    const tr_attend attend = attend_of(pass, layer);
    const tr_rotary rotary = rotary_of(pass, layer);

    if (parts->has_norm)
        ops->add_norm_forward(d, &parts->attention, rows, branch,
                              branch ? a->x : k->x, k->x, &k->attention,
                              k->in);
    ops->linear_forward(d, &parts->qkv, rows, input_of(k, parts),
                        parts->qkv.bias != NULL, k->qkv);
    norm_heads(pass, layer, false, k->qkv);
    ops->rotate(d, &rotary, rows, pass->batch->position, false, k->qkv);
    ops->attention_forward(d, &attend, k->qkv, k->context);
    ops->linear_forward(d, &parts->out, rows, k->context, false, a->branch);
}

/* The feed-forward network without its last product. */
static void forward_network(const tr_pass *pass, uint32_t layer,
                            const layer_parts *parts)
{
    const tr_ops *const ops = pass->ops;
    tr_device *const d = pass->device;
    const size_t rows = pass->batch->n_rows;
    pre_activations *const a = pre_kept(pass);
    const pre_layer_kept *const k = a->layer + layer;

    ops->add_norm_forward(d, &parts->network, rows, a->branch, k->x, a->x,
                          &k->network, k->middle);
    ops->linear_forward(d, &parts->gate, rows, k->middle, false, k->up);
    ops->gate_forward(d, pass->config->activation, rows, parts->down.in, k->up,
                      k->gated);
}

void pre_layer_forward(const tr_pass *pass, uint32_t layer)
{
    const layer_parts parts = parts_of(pass, layer);
    const pre_activations *const a = pre_kept(pass);

    forward_attention(pass, layer, &parts, layer > 0 ? a->branch : NULL);
    forward_network(pass, layer, &parts);
    pass->ops->linear_forward(pass->device, &parts.down, pass->batch->n_rows,
                              a->layer[layer].gated, false, a->branch);
}

void pre_layer_recompute(const tr_pass *pass, uint32_t layer)
{
    const layer_parts parts = parts_of(pass, layer);

    forward_attention(pass, layer, &parts, NULL);
    forward_network(pass, layer, &parts);
}

/* ---- Backward ---- */

static void backward_network(const tr_pass *pass, uint32_t layer,
                             const layer_parts *parts)
{
    const tr_ops *const ops = pass->ops;
    tr_device *const d = pass->device;
    const size_t rows = pass->batch->n_rows;
    const pre_layer_kept *const k = pre_kept(pass)->layer + layer;
    const pre_scratch *const s = &pre_kept(pass)->scratch;

    ops->linear_backward_input(d, &parts->down, rows, s->d_x, 0, s->d_gated);
    ops->linear_backward_weight(d, &parts->down, rows, s->d_x, k->gated);
    ops->gate_backward(d, pass->config->activation, rows, parts->down.in,
                       k->up, s->d_gated, s->d_up);
    ops->linear_backward_weight(d, &parts->gate, rows, s->d_up, k->middle);
    ops->linear_backward_input(d, &parts->gate, rows, s->d_up, 0, s->d_in);
    ops->add_norm_backward(d, &parts->network, rows, &k->network, s->d_in,
                           s->d_x);
}

static void backward_attention(const tr_pass *pass, uint32_t layer,
                               const layer_parts *parts)
{
    const tr_ops *const ops = pass->ops;
    tr_device *const d = pass->device;
    const size_t rows = pass->batch->n_rows;
    const pre_layer_kept *const k = pre_kept(pass)->layer + layer;
    const pre_scratch *const s = &pre_kept(pass)->scratch;
    const tr_attend attend = attend_of(pass, layer);
    const tr_rotary rotary = rotary_of(pass, layer);

    ops->linear_backward_weight(d, &parts->out, rows, s->d_x, k->context);
    ops->linear_backward_input(d, &parts->out, rows, s->d_x, 0, s->d_context);
    ops->attention_backward(d, &attend, k->qkv, k->context, s->d_context,
                            s->d_qkv);
    ops->rotate(d, &rotary, rows, pass->batch->position, true, s->d_qkv);
    norm_heads(pass, layer, true, s->d_qkv);
    ops->linear_backward_weight(d, &parts->qkv, rows, s->d_qkv,
                                input_of(k, parts));
    if (!parts->has_norm) {
        ops->linear_backward_input(d, &parts->qkv, rows, s->d_qkv, 1, s->d_x);
        return;
    }
    ops->linear_backward_input(d, &parts->qkv, rows, s->d_qkv, 0, s->d_in);
    ops->add_norm_backward(d, &parts->attention, rows, &k->attention, s->d_in,
                           s->d_x);
}

void pre_layer_backward(const tr_pass *pass, uint32_t layer)
{
    const layer_parts parts = parts_of(pass, layer);

    backward_network(pass, layer, &parts);
    backward_attention(pass, layer, &parts);
}
