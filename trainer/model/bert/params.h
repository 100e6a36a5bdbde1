/*
 * params.h - the parameters of BERT.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_PARAMS_H
#define BERT_PARAMS_H

#include "model/params.h"

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

/* Lists the tensors.  Returns false if out of memory or if the config is
 * invalid. */
bool bert_params_list(tr_params *params, const tr_config *config);

/* Index of a tensor of a layer, and of a tensor after the layers. */
size_t bert_params_layer(uint32_t layer, size_t tensor);
size_t bert_params_back(const tr_params *params, size_t tensor);

tr_norm bert_params_norm(const tr_params *params, size_t gain, size_t bias);

#endif /* BERT_PARAMS_H */
