/*
 * params.h - the parameters of a model: names, shapes and offsets.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_MODEL_PARAMS_H
#define TR_MODEL_PARAMS_H

#include "model/arena.h"
#include "model/config.h"
#include "model/tensor.h"

#define TR_NO_TENSOR SIZE_MAX

typedef struct tr_params {
    tr_tensor *tensors;
    size_t n_tensors;
    size_t room;
    size_t n_numbers;
    /* [layers + 1] the first tensor of each layer, and the first after them */
    size_t *layer;
    uint32_t layers;
    double epsilon; /* of norms, in BERT */
    double deviation; /* of initial weights, of tensors added later */
    bool adds; /* backward adds to the gradients instead of setting them */
    tr_arena weights;
    tr_arena gradients;
} tr_params;

/* Starts an empty table; `deviation` is as in tr_config.  Returns false if out
 * of memory. */
bool tr_params_open(tr_params *params, uint32_t layers, double deviation);
void tr_params_free(tr_params *params);

/*
 * Appends a tensor named "PREFIXNAME"; it is a vector if `rows` is 0.  Vectors
 * do not decay.  Returns false if out of memory or if the total overflows.
 */
bool tr_params_add(tr_params *params, const char *prefix, const char *name,
                   uint32_t rows, uint32_t columns);

/* Marks the tensors from `first` on: folders may lack them. */
void tr_params_set_optional(tr_params *params, size_t first);

/* Declares that the next tensor is the first of `layer`. */
void tr_params_begin_layer(tr_params *params, uint32_t layer);

/* Allocates zeroed arenas.  Returns false if out of memory. */
bool tr_params_alloc(tr_params *params, tr_device *device);

/* Draws the initial weights, on the host. */
void tr_params_init(tr_params *params, uint64_t seed);

/* Device address of a tensor's weights or gradients; NULL for TR_NO_TENSOR. */
const real *tr_params_weight(const tr_params *params, size_t tensor);
real *tr_params_gradient(const tr_params *params, size_t tensor);

/*
 * Treats `times` adjacent linear layers as one; `weight` and `bias` are the
 * tensors of the first layer.  `bias` may be TR_NO_TENSOR.
 */
tr_linear tr_params_linear(const tr_params *params, size_t weight, size_t bias,
                           size_t times);

/* `bias` may be TR_NO_TENSOR. */
tr_norm tr_params_norm(const tr_params *params, size_t gain, size_t bias,
                       double epsilon);

#endif /* TR_MODEL_PARAMS_H */
