/*
 * model.c - BERT's encoder with its two pre-training heads, and gradients.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model.h"

#include <stdlib.h>
#include <string.h>

#include "embedding.h"
#include "encoder.h"
#include "heads.h"
#include "model_parts.h"

bert_model *bert_model_open(const bert_config *config, uint64_t seed)
{
    bert_model *const model = calloc(1, sizeof *model);

    if (!model)
        return NULL;
    model->config = *config;
    if (!bert_params_open(&model->params, config)
        || !bert_activations_open(&model->activations, config)) {
        bert_model_free(model);
        return NULL;
    }
    bert_params_init(&model->params, seed);
    return model;
}

void bert_model_free(bert_model *model)
{
    if (!model)
        return;
    bert_params_free(&model->params);
    bert_activations_free(&model->activations);
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

size_t bert_model_numbers(const bert_model *model)
{
    return model->params.n_numbers;
}

real *bert_model_weights(bert_model *model)
{
    return model->params.weights;
}

real *bert_model_gradients(bert_model *model)
{
    return model->params.gradients;
}

void bert_model_clear_gradients(bert_model *model)
{
    memset(model->params.gradients, 0,
           model->params.n_numbers * sizeof(real));
}

static bert_pass pass_of(bert_model *model, const bert_batch *batch,
                         const bert_step *step)
{
    return (bert_pass){
        .params = &model->params,
        .config = &model->config,
        .batch = batch,
        .attention = step->attention,
        .dropout = bert_dropout_at(
            step->training ? model->config.dropout : 0, step->seed),
        .activations = &model->activations};
}

/* The input of a layer, or with one too many, the encoder's output. */
static const real *input_of(const bert_model *model, uint32_t layer)
{
    const bert_activations *const a = &model->activations;

    return layer ? a->layer[layer - 1].out : a->embedded;
}

const real *bert_model_hidden(const bert_model *model)
{
    return input_of(model, model->config.layers);
}

/* The means of the losses of a sequence's masked tokens. */
static void share_mlm(const bert_batch *batch, const double *loss,
                      double *seq_mlm)
{
    for (size_t i = 0; i < batch->n_seq; i++)
        seq_mlm[i] = 0;
    for (size_t i = 0; i < batch->n_mlm;) {
        const int32_t seq = batch->mlm_seq[i];
        const size_t first = i;
        double sum = 0;

        for (; i < batch->n_mlm && batch->mlm_seq[i] == seq; i++)
            sum += loss[i];
        seq_mlm[seq] = sum / (double)(i - first);
    }
}

static void report(const bert_model *model, const bert_batch *batch,
                   bert_losses *losses)
{
    const bert_activations *const a = &model->activations;

    losses->total = losses->mlm + losses->nsp;
    if (losses->seq_mlm)
        share_mlm(batch, a->mlm.loss, losses->seq_mlm);
    for (size_t i = 0; losses->seq_nsp && i < batch->n_seq; i++)
        losses->seq_nsp[i] = a->nsp.loss[i];
}

bool bert_model_forward(bert_model *model, const bert_batch *batch,
                        const bert_step *step, bert_losses *losses)
{
    bert_activations *const a = &model->activations;
    const bert_pass pass = pass_of(model, batch, step);

    if (!bert_activations_fit(a, &model->config, batch, step->attention))
        return false;
    if (model->poison)
        bert_activations_poison(a, true);
    bert_embedding_forward(&model->params, batch, &pass.dropout,
                           &a->embedding_norm, a->embedded);
    for (uint32_t i = 0; i < model->config.layers; i++)
        bert_encoder_forward(&pass, i, input_of(model, i));
    losses->mlm = bert_mlm_forward(&model->params, batch,
                                   bert_model_hidden(model), &a->mlm);
    losses->nsp = bert_nsp_forward(&model->params, batch,
                                   bert_model_hidden(model), &a->nsp);
    report(model, batch, losses);
    return true;
}

void bert_model_backward(bert_model *model, const bert_batch *batch,
                         const bert_step *step)
{
    bert_activations *const a = &model->activations;
    const bert_pass pass = pass_of(model, batch, step);
    real *const d_x = a->scratch.d_x;

    if (model->poison)
        bert_activations_poison(a, false);
    memset(d_x, 0, (size_t)batch->n_rows * model->config.hidden
                       * sizeof *d_x);
    bert_mlm_backward(&model->params, batch, &a->mlm, d_x);
    bert_nsp_backward(&model->params, batch, &a->nsp, d_x);
    for (uint32_t i = model->config.layers; i > 0; i--)
        bert_encoder_backward(&pass, i - 1, input_of(model, i - 1));
    bert_embedding_backward(&model->params, batch, &pass.dropout,
                            &a->embedding_norm, d_x);
}
