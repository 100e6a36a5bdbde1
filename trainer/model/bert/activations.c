/*
 * activations.c - values that a forward pass keeps for its backward pass.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model/bert/activations.h"

#include <stdlib.h>

#include "model/sizes.h"

static void take_layer(tr_carve *carve, bert_layer_kept *layer,
                       const tr_config *config, size_t rows, size_t attend)
{
    layer->qkv = tr_carve_values(carve, rows, (size_t)3 * config->hidden);
    layer->attend = tr_carve_bytes(carve, attend);
    layer->context = tr_carve_values(carve, rows, config->hidden);
    tr_carve_norm(carve, &layer->attention, rows, config->hidden);
    layer->middle = tr_carve_values(carve, rows, config->hidden);
    layer->up = tr_carve_values(carve, rows, config->intermediate);
    layer->gelu = tr_carve_values(carve, rows, config->intermediate);
    tr_carve_norm(carve, &layer->output, rows, config->hidden);
}

static void take_heads(tr_carve *carve, bert_mlm_kept *mlm, bert_nsp_kept *nsp,
                       const tr_config *config, const tr_batch *batch)
{
    mlm->in = tr_carve_values(carve, batch->n_mlm, config->hidden);
    mlm->dense = tr_carve_values(carve, batch->n_mlm, config->hidden);
    tr_carve_norm(carve, &mlm->norm, batch->n_mlm, config->hidden);
    mlm->out = tr_carve_values(carve, batch->n_mlm, config->hidden);
    mlm->stride = tr_carve_stride(carve, config->vocab_size);
    mlm->logits = tr_carve_values(carve, batch->n_mlm, mlm->stride);
    mlm->loss = tr_carve_bytes(carve, tr_times(batch->n_mlm, sizeof(double)));
    mlm->right = tr_carve_bytes(carve,
                                tr_times(batch->n_mlm, sizeof(int32_t)));
    nsp->in = tr_carve_values(carve, batch->n_seq, config->hidden);
    nsp->pooled = tr_carve_values(carve, batch->n_seq, config->hidden);
    nsp->stride = tr_carve_stride(carve, 2);
    nsp->logits = tr_carve_values(carve, batch->n_seq, nsp->stride);
    nsp->loss = tr_carve_bytes(carve, tr_times(batch->n_seq, sizeof(double)));
}

static void take_scratch(tr_carve *carve, bert_activations *a,
                         const tr_config *config, const tr_batch *batch,
                         size_t attention)
{
    bert_scratch *const s = &a->scratch;
    const size_t rows = batch->n_rows;

    s->d_x = tr_carve_values(carve, rows, config->hidden);
    s->d_sum = tr_carve_values(carve, rows, config->hidden);
    s->d_branch = tr_carve_values(carve, rows, config->hidden);
    s->d_wide = tr_carve_values(carve, rows, config->intermediate);
    s->d_qkv = tr_carve_values(carve, rows, (size_t)3 * config->hidden);
    s->attention = tr_carve_bytes(carve, attention);
    a->mlm.scratch = tr_carve_values(carve, batch->n_mlm, config->hidden);
    a->nsp.scratch = tr_carve_values(carve, batch->n_seq, config->hidden);
}

void bert_activations_lay_out(void *kept, tr_carve *carve, tr_device *device,
                              const tr_config *config, const tr_batch *batch,
                              const tr_step *step)
{
    const tr_ops *const ops = device->ops;
    bert_activations *const a = kept;
    const tr_attend attend = {.batch = batch,
                              .heads = config->heads,
                              .kv_heads = config->heads,
                              .width = config->hidden / config->heads,
                              .dense = step->attention == TR_DENSE,
                              .dropout = {.scale = 1}};
    const size_t per_layer = ops->attention_kept(device, &attend);

    tr_carve_norm(carve, &a->embedding_norm, batch->n_rows, config->hidden);
    a->embedded = tr_carve_values(carve, batch->n_rows, config->hidden);
    for (uint32_t i = 0; i < config->layers; i++) {
        if (step->recompute && i > 0)
            a->layer[i] = a->layer[0];
        else
            take_layer(carve, a->layer + i, config, batch->n_rows, per_layer);
        a->layer[i].out = tr_carve_values(carve, batch->n_rows,
                                          config->hidden);
    }
    take_heads(carve, &a->mlm, &a->nsp, config, batch);
    carve->scratch = carve->used;
    take_scratch(carve, a, config, batch,
                 ops->attention_scratch(device, &attend));
}

void *bert_activations_open(tr_device *device, const tr_config *config)
{
    bert_activations *const a = calloc(1, sizeof *a);

    (void)device;
    if (!a)
        return NULL;
    a->layer = calloc(config->layers, sizeof *a->layer);
    if (a->layer)
        return a;
    free(a);
    return NULL;
}

void bert_activations_free(tr_device *device, void *kept)
{
    bert_activations *const a = kept;

    (void)device;
    free(a->layer);
    free(a);
}
