/*
 * params.c - the parameters of a model: names, shapes and offsets.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model/params.h"

#include <stdio.h>
#include <stdlib.h>

#define DEVIATION 0.02

bool tr_params_open(tr_params *params, uint32_t layers, double deviation)
{
    *params = (tr_params){
        .layers = layers,
        .deviation = deviation > 0 ? deviation : DEVIATION};
    params->layer = calloc((size_t)layers + 1, sizeof *params->layer);
    return params->layer != NULL;
}

void tr_params_free(tr_params *params)
{
    free(params->tensors);
    free(params->layer);
    tr_arena_free(&params->weights);
    tr_arena_free(&params->gradients);
    *params = (tr_params){0};
}

/* ---- The table ---- */

static bool grow(tr_params *params)
{
    const size_t room = params->room ? 2 * params->room : 32;
    tr_tensor *const tensors =
        realloc(params->tensors, room * sizeof *tensors);

    if (!tensors)
        return false;
    params->tensors = tensors;
    params->room = room;
    return true;
}

bool tr_params_add(tr_params *params, const char *prefix, const char *name,
                   uint32_t rows, uint32_t columns)
{
    const uint64_t numbers = (uint64_t)(rows ? rows : 1) * columns;
    tr_tensor *t;

    if (numbers > PTRDIFF_MAX / sizeof(real) - params->n_numbers)
        return false;
    if (params->n_tensors == params->room && !grow(params))
        return false;
    t = params->tensors + params->n_tensors++;
    *t = (tr_tensor){.rows = rows ? rows : 1,
                     .columns = columns,
                     .offset = params->n_numbers,
                     .vector = rows == 0,
                     .deviation = params->deviation,
                     .decays = rows != 0};
    snprintf(t->name, sizeof t->name, "%s%s", prefix, name);
    params->n_numbers += (size_t)numbers;
    return true;
}

void tr_params_set_optional(tr_params *params, size_t first)
{
    for (size_t i = first; i < params->n_tensors; i++)
        params->tensors[i].optional = true;
}

void tr_params_begin_layer(tr_params *params, uint32_t layer)
{
    params->layer[layer] = params->n_tensors;
}

bool tr_params_alloc(tr_params *params, tr_device *device)
{
    return tr_arena_open(&params->weights, device, params->n_numbers)
           && tr_arena_open(&params->gradients, device, params->n_numbers);
}

/* ---- Views ---- */

const real *tr_params_weight(const tr_params *params, size_t tensor)
{
    return tensor == TR_NO_TENSOR
               ? NULL
               : params->weights.at + params->tensors[tensor].offset;
}

real *tr_params_gradient(const tr_params *params, size_t tensor)
{
    return tensor == TR_NO_TENSOR
               ? NULL
               : params->gradients.at + params->tensors[tensor].offset;
}

tr_linear tr_params_linear(const tr_params *params, size_t weight, size_t bias,
                           size_t times)
{
    size_t out = 0;

    for (size_t i = 0; i < times; i++)
        out += params->tensors[weight + i].rows;
    return (tr_linear){
        .in = params->tensors[weight].columns,
        .out = out,
        .stride = out,
        .weight = tr_params_weight(params, weight),
        .bias = tr_params_weight(params, bias),
        .weight_gradient = tr_params_gradient(params, weight),
        .bias_gradient = tr_params_gradient(params, bias),
        .adds = params->adds};
}

tr_norm tr_params_norm(const tr_params *params, size_t gain, size_t bias,
                       double epsilon)
{
    return (tr_norm){
        .width = params->tensors[gain].columns,
        .epsilon = epsilon,
        .gain = tr_params_weight(params, gain),
        .bias = tr_params_weight(params, bias),
        .gain_gradient = tr_params_gradient(params, gain),
        .bias_gradient = tr_params_gradient(params, bias),
        .adds = params->adds};
}
