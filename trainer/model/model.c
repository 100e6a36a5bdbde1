/*
 * model.c - a model of any family: its memory, and its passes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model/model.h"

#include <limits.h>
#include <stdlib.h>

#include "model/dropout.h"
#include "model/model_parts.h"

tr_model *tr_model_open(tr_device *device, const tr_config *config,
                        uint64_t seed)
{
    tr_model *const model = calloc(1, sizeof *model);

    if (!model)
        return NULL;
    model->device = device;
    model->config = *config;
    model->family = config->family == TR_BERT ? &tr_bert_family
                                              : &tr_prenorm_family;
    model->block.device = device;
    if (!model->family->list(&model->params, config)
        || !tr_params_alloc(&model->params, device)
        || !(model->kept = model->family->open(device, config))) {
        tr_model_free(model);
        return NULL;
    }
    tr_params_init(&model->params, seed);
    tr_model_store(model);
    return model;
}

void tr_model_free(tr_model *model)
{
    if (!model)
        return;
    if (model->kept)
        model->family->close(model->device, model->kept);
    tr_params_free(&model->params);
    tr_block_room_free(&model->block);
    tr_micro_batch_free(&model->micro_batch);
    tr_unpad_free(&model->unpad);
    tr_bucket_pad_free(&model->bucket_pad);
    free(model);
}

const tr_config *tr_model_config(const tr_model *model)
{
    return &model->config;
}

size_t tr_model_tensors(const tr_model *model)
{
    return model->params.n_tensors;
}

const tr_tensor *tr_model_tensor(const tr_model *model, size_t i)
{
    return model->params.tensors + i;
}

/* ---- The arenas ---- */

size_t tr_model_numbers(const tr_model *model)
{
    return model->params.n_numbers;
}

real *tr_model_weights(tr_model *model)
{
    return model->params.weights.host;
}

const real *tr_model_gradients(const tr_model *model)
{
    return model->params.gradients.host;
}

real *tr_model_device_weights(tr_model *model)
{
    return model->params.weights.at;
}

real *tr_model_device_gradients(const tr_model *model)
{
    return model->params.gradients.at;
}

void tr_model_fetch(tr_model *model)
{
    tr_arena_fetch(&model->params.weights);
}

void tr_model_fetch_gradients(tr_model *model)
{
    tr_arena_fetch(&model->params.gradients);
}

void tr_model_store(tr_model *model)
{
    const tr_arena *const weights = &model->params.weights;

    tr_arena_store(weights);
    model->device->ops->weights_written(model->device, weights->at,
                                        weights->n);
}

/* ---- Buckets ---- */

size_t tr_model_buckets(const tr_model *model)
{
    return (size_t)model->config.layers + 2;
}

/* Offset of bucket i's gradients.  The last bucket has the lowest offset. */
static size_t bucket_begin(const tr_model *model, size_t i)
{
    const tr_params *const p = &model->params;

    if (i > p->layers)
        return 0;
    return p->tensors[p->layer[p->layers - i]].offset;
}

tr_range tr_model_bucket(const tr_model *model, size_t i)
{
    const size_t first = bucket_begin(model, i);
    const size_t end = i == 0 ? model->params.n_numbers
                              : bucket_begin(model, i - 1);

    return (tr_range){.first = first, .count = end - first};
}

void tr_model_watch(tr_model *model, const tr_watch *watch)
{
    model->watch = *watch;
}

/* ---- Forward and backward ---- */

void tr_model_set_graph_mode(tr_model *model, tr_graph_mode how)
{
    model->graph_mode = how;
}

/* Returns the batch with only the rows to compute; NULL if out of memory. */
static const tr_batch *rows_of(tr_model *model, const tr_batch *padded,
                               tr_rows rows)
{
    const tr_batch *const batch =
        tr_unpad_rows(&model->unpad, padded, rows);

    if (!batch || model->graph_mode == TR_EXACT)
        return batch;
    return tr_bucket_pad_batch(&model->bucket_pad, batch, rows != TR_PADDED);
}

static tr_pass pass_of(tr_model *model, const tr_batch *staged,
                       const tr_step *step, bool evaluate)
{
    const tr_ops *const ops = model->device->ops;
    tr_dropout dropout = tr_dropout_at(
        step->training ? model->config.dropout : 0, step->seed);

    dropout.place = staged->place;
    if (model->graph_mode == TR_GRAPHS)
        dropout.shared = ops->step_begin(model->device, staged, step->seed);
    return (tr_pass){
        .device = model->device,
        .ops = ops,
        .params = &model->params,
        .config = &model->config,
        .batch = staged,
        .attention = step->attention,
        .evaluate = evaluate,
        .recompute = step->recompute,
        .dropout = dropout,
        .kept = model->kept,
        .watch = model->watch};
}

/* Lays out the activations of a batch.  Returns false if out of memory. */
static bool fit(tr_model *model, const tr_batch *batch, const tr_step *step)
{
    tr_carve carve = {.value = model->device->value_size};

    /* BLAS dimensions are int. */
    if (batch->n_rows > INT_MAX || batch->n_mlm > INT_MAX
        || batch->n_seq > INT_MAX)
        return false;
    model->family->lay_out(model->kept, &carve, model->device, &model->config,
                           batch, step);
    if (carve.too_large || !tr_block_room_fit(&model->block, carve.used))
        return false;
    model->used = carve.used;
    model->scratch = carve.scratch;
    carve = (tr_carve){.value = carve.value, .block = model->block.block};
    model->family->lay_out(model->kept, &carve, model->device, &model->config,
                           batch, step);
    return true;
}

/* Sets the activations from byte `start` to NaN, so that tests detect reads of
 * unwritten values. */
static void poison(const tr_model *model, size_t start)
{
    if (model->poison)
        model->device->ops->fill(model->device, model->block.block + start,
                                 0xff, model->used - start);
}

/* Stages a batch, and starts a pass on it. */
static bool prepare(tr_model *model, const tr_batch *padded,
                    const tr_step *step, bool evaluate)
{
    const tr_batch *const batch = rows_of(model, padded, step->rows);
    const tr_batch *staged;

    if (!batch || !fit(model, batch, step))
        return false;
    staged = model->device->ops->stage(model->device, batch);
    if (!staged)
        return false;
    model->pass = pass_of(model, staged, step, evaluate);
    poison(model, 0);
    return true;
}

/* Packs `first` to first + n - 1 of a step's batch. */
static bool forward_part(tr_model *model, const tr_batch *padded,
                         uint32_t first, uint32_t n, const tr_step *step)
{
    const tr_batch *const part =
        n == padded->n_packs
            ? padded
            : tr_micro_batch_of(&model->micro_batch, padded, first, n);

    model->params.adds = first > 0;
    if (!part || !prepare(model, part, step, false))
        return false;
    if (first > 0)
        model->pass.watch.needed = NULL;
    if (first + n < padded->n_packs)
        model->pass.watch.done = NULL;
    model->family->forward(&model->pass);
    return true;
}

bool tr_model_forward(tr_model *model, const tr_batch *padded,
                      const tr_step *step)
{
    const uint32_t all = padded->n_packs;
    const uint32_t each = step->micro_batch > 0 ? step->micro_batch : all;
    uint32_t first = 0;

    for (; all - first > each; first += each) {
        if (!forward_part(model, padded, first, each, step))
            return false;
        tr_model_backward(model);
    }
    return forward_part(model, padded, first, all - first, step);
}

bool tr_model_evaluate(tr_model *model, const tr_batch *padded,
                       const tr_step *step)
{
    tr_step how = *step;

    how.recompute = true; /* nothing is kept */
    model->params.adds = false;
    if (!prepare(model, padded, &how, true))
        return false;
    model->family->forward(&model->pass);
    return true;
}

void tr_model_backward(tr_model *model)
{
    poison(model, model->scratch);
    model->family->backward(&model->pass);
}

/* ---- Results ---- */

void tr_model_hidden(const tr_model *model, void *values)
{
    const tr_outputs out = model->family->outputs(&model->pass);

    model->device->ops->download(
        model->device, values, out.hidden,
        (size_t)model->pass.batch->n_rows * model->config.hidden
            * model->device->value_size);
}

void tr_model_row_losses(const tr_model *model, double *mlm, double *nsp)
{
    const tr_outputs out = model->family->outputs(&model->pass);
    const tr_batch *const batch = model->pass.batch;

    model->device->ops->download(model->device, mlm, out.mlm,
                                 batch->n_mlm * sizeof *mlm);
    if (out.nsp)
        model->device->ops->download(model->device, nsp, out.nsp,
                                     batch->n_seq * sizeof *nsp);
}

void tr_model_row_right(const tr_model *model, int32_t *right)
{
    const tr_outputs out = model->family->outputs(&model->pass);

    model->device->ops->download(model->device, right, out.right,
                                 model->pass.batch->n_mlm * sizeof *right);
}
