/*
 * params.h - the parameters of pre-norm models.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PRENORM_PARAMS_H
#define PRENORM_PARAMS_H

#include "model/params.h"

/* Tensors, by use.  Those marked 2 or 3 are adjacent tensors in Llama and one
 * tensor in ModernBERT. */
typedef enum pre_tensor {
    PRE_WORD,
    PRE_EMBEDDING_NORM,
    PRE_ATTENTION_NORM,
    PRE_QKV, /* 3: queries, keys, values */
    PRE_QKV_BIAS, /* 3 */
    PRE_OUT,
    PRE_QUERY_NORM, /* of each head */
    PRE_KEY_NORM,
    PRE_NETWORK_NORM,
    PRE_GATE, /* 2: the activated half, and its factor */
    PRE_DOWN,
    PRE_FINAL_NORM,
    PRE_DENSE, /* of the MLM head */
    PRE_DENSE_NORM,
    PRE_HEAD,
    PRE_HEAD_BIAS,
    PRE_PART /* continues the tensor before it */
} pre_tensor;

/* Lists the tensors.  Returns false if out of memory or if the config is
 * invalid. */
bool pre_params_list(tr_params *params, const tr_config *config);

/* The (first) tensor of a layer; TR_NO_TENSOR if the model lacks it. */
size_t pre_params_layer(const tr_params *params, const tr_config *config,
                        uint32_t layer, pre_tensor which);

/* The same for tensors outside of layers. */
size_t pre_params_find(const tr_params *params, const tr_config *config,
                       pre_tensor which);

#endif /* PRENORM_PARAMS_H */
