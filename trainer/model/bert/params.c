/*
 * params.c - the parameters of a model: names, shapes and offsets.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model/bert/params.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* A dimension of a tensor. */
enum side { ONE, TWO, HIDDEN, INTERMEDIATE, VOCAB, POSITIONS, TYPES };

typedef struct tensor_shape {
    const char *name;
    enum side rows;
    enum side columns;
} tensor_shape;

/* Vectors (tensors of ONE row) are exempt from weight decay. */
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

static uint32_t side_of(const bert_config *config, enum side side)
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

static bool is_shape(const bert_config *c)
{
    return in_range(c->vocab_size) && in_range(c->hidden)
           && in_range(c->layers) && in_range(c->heads)
           && in_range(c->intermediate) && in_range(c->positions)
           && in_range(c->types) && c->hidden % c->heads == 0
           && c->dropout >= 0 && c->dropout < 1;
}

/* Appends a tensor.  Returns false if the total overflows. */
static bool append(bert_params *params, const bert_config *config,
                   const char *prefix, const tensor_shape *shape)
{
    bert_tensor *const t = params->tensors + params->n_tensors++;
    uint64_t numbers;

    snprintf(t->name, sizeof t->name, "%s%s", prefix, shape->name);
    t->rows = side_of(config, shape->rows);
    t->columns = side_of(config, shape->columns);
    t->offset = params->n_numbers;
    t->decays = shape->rows != ONE;
    numbers = (uint64_t)t->rows * t->columns;
    if (numbers > PTRDIFF_MAX / sizeof(real) - params->n_numbers)
        return false;
    params->n_numbers += (size_t)numbers;
    return true;
}

static bool append_all(bert_params *params, const bert_config *config,
                       const char *prefix, size_t n, const tensor_shape *shapes)
{
    for (size_t i = 0; i < n; i++) {
        if (!append(params, config, prefix, shapes + i))
            return false;
    }
    return true;
}

static bool fill_table(bert_params *params, const bert_config *config)
{
    if (!append_all(params, config, "bert.embeddings.", BERT_FRONT, front))
        return false;
    for (uint32_t i = 0; i < config->layers; i++) {
        char prefix[40];

        snprintf(prefix, sizeof prefix, "bert.encoder.layer.%u.",
                 (unsigned)i);
        if (!append_all(params, config, prefix, BERT_PER_LAYER, per_layer))
            return false;
    }
    return append_all(params, config, "", BERT_BACK, back);
}

bool bert_params_open(bert_params *params, const bert_config *config)
{
    *params = (bert_params){0};
    if (!is_shape(config))
        return false;
    params->layers = config->layers;
    params->tensors = calloc(bert_params_back(params, BERT_BACK),
                             sizeof *params->tensors);
    if (params->tensors && fill_table(params, config))
        return true;
    bert_params_free(params);
    return false;
}

void bert_params_free(bert_params *params)
{
    free(params->tensors);
    tr_arena_free(&params->weights);
    tr_arena_free(&params->gradients);
    *params = (bert_params){0};
}

bool bert_params_alloc(bert_params *params, tr_device *device)
{
    return tr_arena_open(&params->weights, device, params->n_numbers)
           && tr_arena_open(&params->gradients, device, params->n_numbers);
}

size_t bert_params_layer(uint32_t layer, size_t tensor)
{
    return BERT_FRONT + (size_t)layer * BERT_PER_LAYER + tensor;
}

size_t bert_params_back(const bert_params *params, size_t tensor)
{
    return bert_params_layer(params->layers, tensor);
}

const real *bert_params_weight(const bert_params *params, size_t tensor)
{
    return params->weights.at + params->tensors[tensor].offset;
}

real *bert_params_gradient(const bert_params *params, size_t tensor)
{
    return params->gradients.at + params->tensors[tensor].offset;
}

tr_linear bert_params_linear(const bert_params *params, size_t weight,
                             size_t bias, size_t times)
{
    return (tr_linear){
        .in = params->tensors[weight].columns,
        .out = times * params->tensors[weight].rows,
        .stride = times * params->tensors[weight].rows,
        .weight = bert_params_weight(params, weight),
        .bias = bert_params_weight(params, bias),
        .weight_gradient = bert_params_gradient(params, weight),
        .bias_gradient = bert_params_gradient(params, bias)};
}

tr_norm bert_params_norm(const bert_params *params, size_t gain, size_t bias)
{
    return (tr_norm){
        .width = params->tensors[gain].columns,
        .gain = bert_params_weight(params, gain),
        .bias = bert_params_weight(params, bias),
        .gain_gradient = bert_params_gradient(params, gain),
        .bias_gradient = bert_params_gradient(params, bias)};
}
