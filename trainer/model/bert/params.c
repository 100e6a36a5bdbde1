/*
 * params.c - the parameters of BERT.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model/bert/params.h"

#include <limits.h>
#include <stdio.h>

#define EPSILON 1e-12 /* of norms, unless the config has one */

/* A dimension of a tensor. */
enum side { ONE, TWO, HIDDEN, INTERMEDIATE, VOCAB, POSITIONS, TYPES };

typedef struct tensor_shape {
    const char *name;
    enum side rows; /* ONE: a vector */
    enum side columns;
} tensor_shape;

static const tensor_shape front[BERT_FRONT] = {
    {"word_embeddings.weight", VOCAB, HIDDEN},
    {"position_embeddings.weight", POSITIONS, HIDDEN},
    {"token_type_embeddings.weight", TYPES, HIDDEN},
    {"LayerNorm.weight", ONE, HIDDEN},
    {"LayerNorm.bias", ONE, HIDDEN},
};

static const tensor_shape per_layer[BERT_PER_LAYER] = {
    {"attention.self.query.weight", HIDDEN, HIDDEN},
    {"attention.self.key.weight", HIDDEN, HIDDEN},
    {"attention.self.value.weight", HIDDEN, HIDDEN},
    {"attention.self.query.bias", ONE, HIDDEN},
    {"attention.self.key.bias", ONE, HIDDEN},
    {"attention.self.value.bias", ONE, HIDDEN},
    {"attention.output.dense.weight", HIDDEN, HIDDEN},
    {"attention.output.dense.bias", ONE, HIDDEN},
    {"attention.output.LayerNorm.weight", ONE, HIDDEN},
    {"attention.output.LayerNorm.bias", ONE, HIDDEN},
    {"intermediate.dense.weight", INTERMEDIATE, HIDDEN},
    {"intermediate.dense.bias", ONE, INTERMEDIATE},
    {"output.dense.weight", HIDDEN, INTERMEDIATE},
    {"output.dense.bias", ONE, HIDDEN},
    {"output.LayerNorm.weight", ONE, HIDDEN},
    {"output.LayerNorm.bias", ONE, HIDDEN},
};

static const tensor_shape back[BERT_BACK] = {
    {"bert.pooler.dense.weight", HIDDEN, HIDDEN},
    {"bert.pooler.dense.bias", ONE, HIDDEN},
    {"cls.predictions.transform.dense.weight", HIDDEN, HIDDEN},
    {"cls.predictions.transform.dense.bias", ONE, HIDDEN},
    {"cls.predictions.transform.LayerNorm.weight", ONE, HIDDEN},
    {"cls.predictions.transform.LayerNorm.bias", ONE, HIDDEN},
    {"cls.seq_relationship.weight", TWO, HIDDEN},
    {"cls.predictions.bias", ONE, VOCAB},
    {"cls.seq_relationship.bias", ONE, TWO},
};

static uint32_t side_of(const tr_config *config, enum side side)
{
    switch (side) {
    case TWO: return 2;
    case HIDDEN: return config->hidden;
    case INTERMEDIATE: return config->intermediate;
    case VOCAB: return config->vocab_size;
    case POSITIONS: return config->positions;
    case TYPES: return config->types;
    case ONE: break;
    }
    return 1;
}

static bool in_range(uint32_t n)
{
    /* BLAS dimensions are int; query, key and value form one matrix. */
    return n >= 1 && n <= INT_MAX / 3;
}

static bool is_shape(const tr_config *c)
{
    return in_range(c->vocab_size) && in_range(c->hidden)
           && in_range(c->layers) && in_range(c->heads)
           && in_range(c->intermediate) && in_range(c->positions)
           && in_range(c->types) && c->hidden % c->heads == 0
           && c->dropout >= 0 && c->dropout < 1;
}

static bool append_all(tr_params *params, const tr_config *config,
                       const char *prefix, size_t n, const tensor_shape *shapes)
{
    for (size_t i = 0; i < n; i++) {
        const tensor_shape *const s = shapes + i;
        const uint32_t rows = s->rows == ONE ? 0 : side_of(config, s->rows);

        if (!tr_params_add(params, prefix, s->name, rows,
                           side_of(config, s->columns)))
            return false;
    }
    return true;
}

bool bert_params_list(tr_params *params, const tr_config *config)
{
    if (!is_shape(config)
        || !tr_params_open(params, config->layers, config->deviation)
        || !append_all(params, config, "bert.embeddings.", BERT_FRONT, front))
        return false;
    for (uint32_t i = 0; i < config->layers; i++) {
        char prefix[40];

        snprintf(prefix, sizeof prefix, "bert.encoder.layer.%u.",
                 (unsigned)i);
        tr_params_begin_layer(params, i);
        if (!append_all(params, config, prefix, BERT_PER_LAYER, per_layer))
            return false;
    }
    tr_params_begin_layer(params, config->layers);
    if (!append_all(params, config, "", BERT_BACK, back))
        return false;
    tr_params_set_optional(params, bert_params_back(params, 0));
    params->epsilon = config->epsilon > 0 ? config->epsilon : EPSILON;
    return true;
}

size_t bert_params_layer(uint32_t layer, size_t tensor)
{
    return BERT_FRONT + (size_t)layer * BERT_PER_LAYER + tensor;
}

size_t bert_params_back(const tr_params *params, size_t tensor)
{
    return bert_params_layer(params->layers, tensor);
}

tr_norm bert_params_norm(const tr_params *params, size_t gain, size_t bias)
{
    return tr_params_norm(params, gain, bias, params->epsilon);
}
