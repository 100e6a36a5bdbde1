/*
 * params.h - the parameters of a model: names, shapes and offsets.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_PARAMS_H
#define BERT_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/arena.h"
#include "model/bert/config.h"
#include "model/bert/model.h"

/* Tensors before the layers. */
enum {
    BERT_WORD,
    BERT_POSITION,
    BERT_TYPE,
    BERT_EMBEDDING_GAIN,
    BERT_EMBEDDING_BIAS,
    BERT_FRONT
};

/*
 * Tensors of an encoder layer.  The query, key and value weights are contiguous
 * and are used as one (3 * hidden) x hidden matrix.
 */
enum {
    BERT_QUERY_WEIGHT,
    BERT_KEY_WEIGHT,
    BERT_VALUE_WEIGHT,
    BERT_QUERY_BIAS,
    BERT_KEY_BIAS,
    BERT_VALUE_BIAS,
    BERT_OUT_WEIGHT,
    BERT_OUT_BIAS,
    BERT_ATTENTION_GAIN,
    BERT_ATTENTION_BIAS,
    BERT_UP_WEIGHT,
    BERT_UP_BIAS,
    BERT_DOWN_WEIGHT,
    BERT_DOWN_BIAS,
    BERT_LAYER_GAIN,
    BERT_LAYER_BIAS,
    BERT_PER_LAYER
};

/*
 * Tensors after the layers.  The decoder's bias can have any length and
 * misaligns the tensors after it, so only a bias of two numbers follows it.
 */
enum {
    BERT_POOLER_WEIGHT,
    BERT_POOLER_BIAS,
    BERT_TRANSFORM_WEIGHT,
    BERT_TRANSFORM_BIAS,
    BERT_TRANSFORM_GAIN,
    BERT_TRANSFORM_SHIFT,
    BERT_NSP_WEIGHT,
    BERT_DECODER_BIAS,
    BERT_NSP_BIAS,
    BERT_BACK
};

typedef struct bert_params {
    bert_tensor *tensors;
    size_t n_tensors;
    size_t n_numbers;
    uint32_t layers;
    tr_arena weights;
    tr_arena gradients;
} bert_params;

/*
 * Fills in the tensor table.  Returns false, with *params zeroed, if out of
 * memory or if the config is invalid.
 */
bool bert_params_open(bert_params *params, const bert_config *config);
void bert_params_free(bert_params *params);

/* Allocates zeroed arenas.  Returns false if out of memory. */
bool bert_params_alloc(bert_params *params, tr_device *device);

/* Draws the initial weights, on the host. */
void bert_params_init(bert_params *params, uint64_t seed);

/* Index of a tensor of a layer, and of a tensor after the layers. */
size_t bert_params_layer(uint32_t layer, size_t tensor);
size_t bert_params_back(const bert_params *params, size_t tensor);

/* Device address of a tensor's weights or gradients. */
const real *bert_params_weight(const bert_params *params, size_t tensor);
real *bert_params_gradient(const bert_params *params, size_t tensor);

/*
 * Treats `times` adjacent linear layers as one; `weight` and `bias` are the
 * tensors of the first layer.
 */
tr_linear bert_params_linear(const bert_params *params, size_t weight,
                             size_t bias, size_t times);
tr_norm bert_params_norm(const bert_params *params, size_t gain, size_t bias);

#endif /* BERT_PARAMS_H */
