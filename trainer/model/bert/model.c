/*
 * model.c - BERT's encoder with its two pre-training heads, and gradients.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model/bert/model.h"

#include <stdlib.h>

#include "model/bert/dropout_sites.h"
#include "model/bert/encoder.h"
#include "model/bert/heads.h"
#include "model/bert/model_parts.h"
#include "model/dropout.h"

bert_model *bert_model_open(tr_device *device, const bert_config *config,
                            uint64_t seed)
{
    bert_model *const model = calloc(1, sizeof *model);

    if (!model)
        return NULL;
    model->device = device;
    model->config = *config;
    if (!bert_params_open(&model->params, config)
        || !bert_params_alloc(&model->params, device)
        || !bert_activations_open(&model->activations, device, config)) {
        bert_model_free(model);
        return NULL;
    }
    bert_params_init(&model->params, seed);
    bert_model_store(model);
    return model;
}

void bert_model_free(bert_model *model)
{
    if (!model)
        return;
    bert_params_free(&model->params);
    bert_activations_free(&model->activations);
    tr_unpad_free(&model->unpad);
    tr_bucket_pad_free(&model->bucket_pad);
    free(model);
}

const bert_config *bert_model_config(const bert_model *model)
{
    return &model->config;
}

size_t bert_model_tensors(const bert_model *model)
{
    return model->params.n_tensors;
}

const bert_tensor *bert_model_tensor(const bert_model *model, size_t i)
{
    return model->params.tensors + i;
}

/* ---- The arenas ---- */

size_t bert_model_numbers(const bert_model *model)
{
    return model->params.n_numbers;
}

real *bert_model_weights(bert_model *model)
{
    return model->params.weights.host;
}

const real *bert_model_gradients(const bert_model *model)
{
    return model->params.gradients.host;
}

real *bert_model_device_weights(bert_model *model)
{
    return model->params.weights.at;
}

real *bert_model_device_gradients(const bert_model *model)
{
    return model->params.gradients.at;
}

void bert_model_fetch(bert_model *model)
{
    tr_arena_fetch(&model->params.weights);
}

void bert_model_fetch_gradients(bert_model *model)
{
    tr_arena_fetch(&model->params.gradients);
}

void bert_model_store(bert_model *model)
{
    const tr_arena *const weights = &model->params.weights;

    tr_arena_store(weights);
    model->device->ops->weights_written(model->device, weights->at,
                                        weights->n);
}

/* ---- Buckets ---- */

size_t bert_model_buckets(const bert_model *model)
{
    return (size_t)model->config.layers + 2;
}

/* Offset of bucket i's gradients.  The last bucket has the lowest offset. */
static size_t bucket_begin(const bert_model *model, size_t i)
{
    const uint32_t layers = model->config.layers;

    if (i > layers)
        return 0;
    return model->params.tensors[bert_params_layer(layers - (uint32_t)i, 0)]
        .offset;
}

tr_range bert_model_bucket(const bert_model *model, size_t i)
{
    const size_t first = bucket_begin(model, i);
    const size_t end = i == 0 ? model->params.n_numbers
                              : bucket_begin(model, i - 1);

    return (tr_range){.first = first, .count = end - first};
}

void bert_model_watch(bert_model *model, const bert_watch *watch)
{
    model->watch = *watch;
}

static void tell_needed(const bert_model *model, size_t bucket)
{
    if (model->watch.needed)
        model->watch.needed(model->watch.context, bucket);
}

static void tell_done(const bert_model *model, size_t bucket)
{
    if (model->watch.done)
        model->watch.done(model->watch.context, bucket);
}

/* ---- Forward and backward ---- */

void bert_model_set_graph_mode(bert_model *model, bert_graph_mode how)
{
    model->graph_mode = how;
}

/* Returns the batch with only the rows to compute; NULL if out of memory. */
static const tr_batch *rows_of(bert_model *model, const tr_batch *padded,
                               tr_rows rows)
{
    const tr_batch *const batch =
        tr_unpad_rows(&model->unpad, padded, rows);

    if (!batch || model->graph_mode == BERT_EXACT)
        return batch;
    return tr_bucket_pad_batch(&model->bucket_pad, batch, rows != TR_PADDED);
}

static bert_pass pass_of(bert_model *model, const tr_batch *staged,
                         const bert_step *step)
{
    const tr_ops *const ops = model->device->ops;
    tr_dropout dropout = tr_dropout_at(
        step->training ? model->config.dropout : 0, step->seed);

    dropout.place = staged->place;
    if (model->graph_mode == BERT_GRAPHS)
        dropout.shared = ops->step_begin(model->device, staged, step->seed);
    return (bert_pass){
        .device = model->device,
        .ops = ops,
        .params = &model->params,
        .config = &model->config,
        .batch = staged,
        .attention = step->attention,
        .dropout = dropout,
        .activations = &model->activations};
}

static tr_tables tables_of(const bert_params *p)
{
    return (tr_tables){
        .word = bert_params_weight(p, BERT_WORD),
        .position = bert_params_weight(p, BERT_POSITION),
        .type = bert_params_weight(p, BERT_TYPE),
        .word_gradient = bert_params_gradient(p, BERT_WORD),
        .position_gradient = bert_params_gradient(p, BERT_POSITION),
        .type_gradient = bert_params_gradient(p, BERT_TYPE)};
}

static tr_norm embedding_norm(const bert_params *p)
{
    return bert_params_norm(p, BERT_EMBEDDING_GAIN, BERT_EMBEDDING_BIAS);
}

/* The input of a layer; if layer is config.layers, the encoder's output. */
static const void *input_of(const bert_model *model, uint32_t layer)
{
    const bert_activations *const a = &model->activations;

    return layer ? a->layer[layer - 1].out : a->embedded;
}

static const void *output_of(const bert_model *model)
{
    return input_of(model, model->config.layers);
}

bool bert_model_forward(bert_model *model, const tr_batch *padded,
                        const bert_step *step)
{
    const tr_batch *const batch = rows_of(model, padded, step->rows);
    bert_activations *const a = &model->activations;
    const tr_tables tables = tables_of(&model->params);
    const tr_norm norm = embedding_norm(&model->params);
    const bert_pass *const pass = &model->pass;
    const uint32_t layers = model->config.layers;
    const tr_batch *staged;

    if (!batch
        || !bert_activations_fit(a, &model->config, batch,
                                 step->attention == BERT_DENSE))
        return false;
    staged = model->device->ops->stage(model->device, batch);
    if (!staged)
        return false;
    model->pass = pass_of(model, staged, step);
    if (model->poison)
        bert_activations_poison(a, true);
    tell_needed(model, layers + 1);
    pass->ops->embed_forward(pass->device, &tables, &norm, staged,
                             &pass->dropout, BERT_SITE_EMBEDDING,
                             &a->embedding_norm, a->embedded);
    for (uint32_t i = 0; i < layers; i++) {
        tell_needed(model, layers - i);
        bert_encoder_forward(pass, i, input_of(model, i));
    }
    tell_needed(model, 0);
    bert_mlm_forward(pass, output_of(model));
    bert_nsp_forward(pass, output_of(model));
    return true;
}

/* Bytes in the encoder's output. */
static size_t output_size(const bert_model *model)
{
    return (size_t)model->pass.batch->n_rows * model->config.hidden
           * model->device->value_size;
}

/*
 * Zeroes the gradients of the position and type tables, because operations only
 * add to them.  The decoder's backward sets the gradients of the word table
 * before the input rows are added.
 */
static void clear_tables(const bert_model *model)
{
    const bert_params *const p = &model->params;
    const size_t first = p->tensors[BERT_POSITION].offset;
    const size_t end = p->tensors[BERT_EMBEDDING_GAIN].offset;

    model->pass.ops->fill(model->pass.device, p->gradients.at + first, 0,
                          (end - first) * sizeof(real));
}

void bert_model_backward(bert_model *model)
{
    bert_activations *const a = &model->activations;
    const tr_tables tables = tables_of(&model->params);
    const tr_norm norm = embedding_norm(&model->params);
    const bert_pass *const pass = &model->pass;
    const uint32_t layers = model->config.layers;
    void *const d_x = a->scratch.d_x;

    if (model->poison)
        bert_activations_poison(a, false);
    pass->ops->fill(pass->device, d_x, 0, output_size(model));
    bert_mlm_backward(pass, d_x);
    bert_nsp_backward(pass, d_x);
    tell_done(model, 0);
    for (uint32_t i = layers; i > 0; i--) {
        bert_encoder_backward(pass, i - 1, input_of(model, i - 1));
        tell_done(model, layers - i + 1);
    }
    clear_tables(model);
    pass->ops->embed_backward(pass->device, &tables, &norm, pass->batch,
                              &pass->dropout, BERT_SITE_EMBEDDING,
                              &a->embedding_norm, d_x);
    tell_done(model, layers + 1);
}

void bert_model_hidden(const bert_model *model, void *values)
{
    model->device->ops->download(model->device, values, output_of(model),
                                 output_size(model));
}

void bert_model_row_losses(const bert_model *model, double *mlm, double *nsp)
{
    const bert_activations *const a = &model->activations;
    const tr_batch *const batch = model->pass.batch;

    model->device->ops->download(model->device, mlm, a->mlm.loss,
                                 batch->n_mlm * sizeof *mlm);
    model->device->ops->download(model->device, nsp, a->nsp.loss,
                                 batch->n_seq * sizeof *nsp);
}
