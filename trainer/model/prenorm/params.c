/*
 * params.c - the parameters of pre-norm models.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model/prenorm/params.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

/* A dimension of a tensor. */
enum side {
    ONE, HIDDEN, HEAD, QUERIES, KEYS, QKV, INTERMEDIATE, GATED, VOCAB
};

/* When a model has a tensor. */
enum when { ALWAYS, NOT_FIRST, IF_QKV_BIAS, IF_QK_NORM, IF_UNTIED };

typedef struct shape {
    const char *name;
    enum side rows; /* ONE: a vector */
    enum side columns;
    pre_tensor which;
    enum when when;
} shape;

/* The tensors of a family: before, in, and after the layers. */
typedef struct layout {
    const shape *front, *layers, *back;
} layout;

#define END {NULL, ONE, ONE, PRE_PART, ALWAYS}

static const shape llama_front[] = {
    {"model.embed_tokens.weight", VOCAB, HIDDEN, PRE_WORD, ALWAYS},
    END};

static const shape llama_layer[] = {
    {"input_layernorm.weight", ONE, HIDDEN, PRE_ATTENTION_NORM, ALWAYS},
    {"self_attn.q_proj.weight", QUERIES, HIDDEN, PRE_QKV, ALWAYS},
    {"self_attn.k_proj.weight", KEYS, HIDDEN, PRE_PART, ALWAYS},
    {"self_attn.v_proj.weight", KEYS, HIDDEN, PRE_PART, ALWAYS},
    {"self_attn.q_proj.bias", ONE, QUERIES, PRE_QKV_BIAS, IF_QKV_BIAS},
    {"self_attn.k_proj.bias", ONE, KEYS, PRE_PART, IF_QKV_BIAS},
    {"self_attn.v_proj.bias", ONE, KEYS, PRE_PART, IF_QKV_BIAS},
    {"self_attn.o_proj.weight", HIDDEN, QUERIES, PRE_OUT, ALWAYS},
    {"self_attn.q_norm.weight", ONE, HEAD, PRE_QUERY_NORM, IF_QK_NORM},
    {"self_attn.k_norm.weight", ONE, HEAD, PRE_KEY_NORM, IF_QK_NORM},
    {"post_attention_layernorm.weight", ONE, HIDDEN, PRE_NETWORK_NORM, ALWAYS},
    {"mlp.gate_proj.weight", INTERMEDIATE, HIDDEN, PRE_GATE, ALWAYS},
    {"mlp.up_proj.weight", INTERMEDIATE, HIDDEN, PRE_PART, ALWAYS},
    {"mlp.down_proj.weight", HIDDEN, INTERMEDIATE, PRE_DOWN, ALWAYS},
    END};

static const shape llama_back[] = {
    {"model.norm.weight", ONE, HIDDEN, PRE_FINAL_NORM, ALWAYS},
    {"lm_head.weight", VOCAB, HIDDEN, PRE_HEAD, IF_UNTIED},
    END};

static const shape modern_front[] = {
    {"model.embeddings.tok_embeddings.weight", VOCAB, HIDDEN, PRE_WORD, ALWAYS},
    {"model.embeddings.norm.weight", ONE, HIDDEN, PRE_EMBEDDING_NORM, ALWAYS},
    END};

static const shape modern_layer[] = {
    {"attn_norm.weight", ONE, HIDDEN, PRE_ATTENTION_NORM, NOT_FIRST},
    {"attn.Wqkv.weight", QKV, HIDDEN, PRE_QKV, ALWAYS},
    {"attn.Wo.weight", HIDDEN, QUERIES, PRE_OUT, ALWAYS},
    {"mlp_norm.weight", ONE, HIDDEN, PRE_NETWORK_NORM, ALWAYS},
    {"mlp.Wi.weight", GATED, HIDDEN, PRE_GATE, ALWAYS},
    {"mlp.Wo.weight", HIDDEN, INTERMEDIATE, PRE_DOWN, ALWAYS},
    END};

/* The decoder's bias can have any length and would misalign what follows. */
static const shape modern_back[] = {
    {"model.final_norm.weight", ONE, HIDDEN, PRE_FINAL_NORM, ALWAYS},
    {"head.dense.weight", HIDDEN, HIDDEN, PRE_DENSE, ALWAYS},
    {"head.norm.weight", ONE, HIDDEN, PRE_DENSE_NORM, ALWAYS},
    {"decoder.weight", VOCAB, HIDDEN, PRE_HEAD, IF_UNTIED},
    {"decoder.bias", ONE, VOCAB, PRE_HEAD_BIAS, ALWAYS},
    END};

static const layout llama = {llama_front, llama_layer, llama_back};
static const layout modern = {modern_front, modern_layer, modern_back};

static const layout *layout_of(const tr_config *config)
{
    return config->family == TR_LLAMA ? &llama : &modern;
}

static uint32_t side_of(const tr_config *c, enum side side)
{
    const uint32_t queries = c->heads * c->head_width;
    const uint32_t keys = c->kv_heads * c->head_width;

    switch (side) {
    case HIDDEN: return c->hidden;
    case HEAD: return c->head_width;
    case QUERIES: return queries;
    case KEYS: return keys;
    case QKV: return queries + 2 * keys;
    case INTERMEDIATE: return c->intermediate;
    case GATED: return 2 * c->intermediate;
    case VOCAB: return c->vocab_size;
    case ONE: break;
    }
    return 0;
}

static bool is_there(const tr_config *c, const shape *s, uint32_t layer)
{
    switch (s->when) {
    case NOT_FIRST: return layer > 0;
    case IF_QKV_BIAS: return c->qkv_bias;
    case IF_QK_NORM: return c->qk_norm;
    case IF_UNTIED: return !c->tied;
    case ALWAYS: break;
    }
    return true;
}

/* ---- Listing ---- */

/* BLAS dimensions are int. */
static bool in_range(uint64_t n)
{
    return n >= 1 && n <= INT_MAX;
}

static bool is_valid(const tr_config *c)
{
    return in_range(c->vocab_size) && in_range(c->hidden)
           && in_range(c->layers) && c->layers <= TR_LAYERS_MAX
           && in_range(c->heads) && in_range(c->kv_heads)
           && c->heads % c->kv_heads == 0 && in_range(c->head_width)
           && c->head_width % 2 == 0
           && in_range(((uint64_t)c->heads + 2 * (uint64_t)c->kv_heads)
                       * c->head_width)
           && in_range(2 * (uint64_t)c->intermediate)
           && in_range(c->positions) && c->epsilon >= 0;
}

/* ModernBERT's layers and head begin with smaller weights in the products that
 * end them. */
static bool starts_small(const tr_config *config, pre_tensor which)
{
    return config->family == TR_MODERNBERT
           && (which == PRE_OUT || which == PRE_DOWN || which == PRE_DENSE
               || which == PRE_HEAD);
}

static bool add_all(tr_params *params, const tr_config *config,
                    const char *prefix, const shape *shapes, uint32_t layer)
{
    for (const shape *s = shapes; s->name; s++) {
        if (!is_there(config, s, layer))
            continue;
        if (!tr_params_add(params, prefix, s->name, side_of(config, s->rows),
                           side_of(config, s->columns)))
            return false;
        if (starts_small(config, s->which))
            params->tensors[params->n_tensors - 1].deviation /=
                sqrt(2.0 * config->layers);
    }
    return true;
}

bool pre_params_list(tr_params *params, const tr_config *config)
{
    const layout *const l = layout_of(config);

    if (!is_valid(config)
        || !tr_params_open(params, config->layers, config->deviation)
        || !add_all(params, config, "", l->front, 0))
        return false;
    for (uint32_t i = 0; i < config->layers; i++) {
        char prefix[40];

        snprintf(prefix, sizeof prefix, "model.layers.%u.", (unsigned)i);
        tr_params_begin_layer(params, i);
        if (!add_all(params, config, prefix, l->layers, i))
            return false;
    }
    tr_params_begin_layer(params, config->layers);
    if (!add_all(params, config, "", l->back, 0))
        return false;
    /* All heads come after the final norm. */
    tr_params_set_optional(params, params->layer[config->layers] + 1);
    return true;
}

/* ---- Finding ---- */

static size_t find(const tr_config *config, const shape *shapes, size_t first,
                   uint32_t layer, pre_tensor which)
{
    size_t at = first;

    for (const shape *s = shapes; s->name; s++) {
        if (!is_there(config, s, layer))
            continue;
        if (s->which == which)
            return at;
        at++;
    }
    return TR_NO_TENSOR;
}

size_t pre_params_layer(const tr_params *params, const tr_config *config,
                        uint32_t layer, pre_tensor which)
{
    return find(config, layout_of(config)->layers, params->layer[layer], layer,
                which);
}

size_t pre_params_find(const tr_params *params, const tr_config *config,
                       pre_tensor which)
{
    const layout *const l = layout_of(config);
    const size_t at = find(config, l->front, 0, 0, which);

    return at != TR_NO_TENSOR ? at
                              : find(config, l->back,
                                     params->layer[params->layers], 0, which);
}
