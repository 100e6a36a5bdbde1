/*
 * activations.c - values that a forward pass keeps for its backward pass.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model/bert/activations.h"

#include <limits.h>
#include <stdlib.h>

#include "model/sizes.h"

#define LINE ((size_t)TR_LINE_BYTES)

/* Largest size of a block, in bytes. */
#define MAX (PTRDIFF_MAX / LINE * LINE - LINE)

/*
 * Arrays are laid out twice: first without a block, to compute its size, and
 * then in the block.
 */
typedef struct dealing {
    unsigned char *block; /* NULL in the first layout */
    size_t used;          /* bytes */
    size_t value;         /* bytes per value */
    bool too_large;
} dealing;

static void *take_bytes(dealing *deal, size_t bytes)
{
    unsigned char *const place = deal->block ? deal->block + deal->used
                                             : NULL;

    if (bytes > MAX - deal->used)
        deal->too_large = true;
    else
        deal->used += (bytes + LINE - 1) / LINE * LINE;
    return place;
}

static void *take(dealing *deal, size_t rows, size_t columns)
{
    return take_bytes(deal, tr_times(tr_times(rows, columns), deal->value));
}

/* Row stride of logits, in values. */
static size_t stride_of(const dealing *deal, size_t columns)
{
    const size_t multiple = TR_ROW_BYTES / deal->value;

    return (columns + multiple - 1) / multiple * multiple;
}

static void take_norm(dealing *deal, tr_norm_kept *norm, size_t rows,
                      size_t columns)
{
    norm->hat = take(deal, rows, columns);
    norm->inverse = take_bytes(deal, tr_times(rows, sizeof(real)));
}

static void take_layer(dealing *deal, bert_layer_kept *layer,
                       const bert_config *config, size_t rows, size_t attend)
{
    layer->qkv = take(deal, rows, (size_t)3 * config->hidden);
    layer->attend = take_bytes(deal, attend);
    layer->context = take(deal, rows, config->hidden);
    take_norm(deal, &layer->attention, rows, config->hidden);
    layer->middle = take(deal, rows, config->hidden);
    layer->up = take(deal, rows, config->intermediate);
    layer->gelu = take(deal, rows, config->intermediate);
    take_norm(deal, &layer->output, rows, config->hidden);
    layer->out = take(deal, rows, config->hidden);
}

static void take_heads(dealing *deal, bert_mlm_kept *mlm, bert_nsp_kept *nsp,
                       const bert_config *config, const tr_batch *batch)
{
    mlm->in = take(deal, batch->n_mlm, config->hidden);
    mlm->dense = take(deal, batch->n_mlm, config->hidden);
    take_norm(deal, &mlm->norm, batch->n_mlm, config->hidden);
    mlm->out = take(deal, batch->n_mlm, config->hidden);
    mlm->stride = stride_of(deal, config->vocab_size);
    mlm->logits = take(deal, batch->n_mlm, mlm->stride);
    mlm->loss = take_bytes(deal, tr_times(batch->n_mlm, sizeof(double)));
    nsp->in = take(deal, batch->n_seq, config->hidden);
    nsp->pooled = take(deal, batch->n_seq, config->hidden);
    nsp->stride = stride_of(deal, 2);
    nsp->logits = take(deal, batch->n_seq, nsp->stride);
    nsp->loss = take_bytes(deal, tr_times(batch->n_seq, sizeof(double)));
}

static void take_scratch(dealing *deal, bert_activations *a,
                         const bert_config *config, const tr_batch *batch,
                         size_t attention)
{
    bert_scratch *const s = &a->scratch;
    const size_t rows = batch->n_rows;

    s->d_x = take(deal, rows, config->hidden);
    s->d_sum = take(deal, rows, config->hidden);
    s->d_branch = take(deal, rows, config->hidden);
    s->d_wide = take(deal, rows, config->intermediate);
    s->d_qkv = take(deal, rows, (size_t)3 * config->hidden);
    s->attention = take_bytes(deal, attention);
    a->mlm.scratch = take(deal, batch->n_mlm, config->hidden);
    a->nsp.scratch = take(deal, batch->n_seq, config->hidden);
}

static void deal_out(dealing *deal, bert_activations *a,
                     const bert_config *config, const tr_batch *batch,
                     bool dense)
{
    const tr_ops *const ops = a->device->ops;
    const size_t kept = ops->attention_kept(a->device, batch, config->hidden,
                                            config->heads, dense);
    const size_t scratch = ops->attention_scratch(
        a->device, batch, config->hidden, config->heads, dense);

    take_norm(deal, &a->embedding_norm, batch->n_rows, config->hidden);
    a->embedded = take(deal, batch->n_rows, config->hidden);
    for (uint32_t i = 0; i < config->layers; i++)
        take_layer(deal, a->layer + i, config, batch->n_rows, kept);
    take_heads(deal, &a->mlm, &a->nsp, config, batch);
    a->scratch_start = deal->used;
    take_scratch(deal, a, config, batch, scratch);
}

bool bert_activations_open(bert_activations *a, tr_device *device,
                           const bert_config *config)
{
    *a = (bert_activations){.device = device};
    a->layer = calloc(config->layers, sizeof *a->layer);
    return a->layer;
}

void bert_activations_free(bert_activations *a)
{
    free(a->layer);
    if (a->block)
        a->device->ops->release(a->device, a->block);
    *a = (bert_activations){0};
}

/*
 * Grows the block to at least `bytes`; its contents are lost.  It grows by half
 * its size if memory allows, so that slowly growing batches seldom cause a
 * reallocation.
 */
static bool grow(bert_activations *a, size_t bytes)
{
    const tr_ops *const ops = a->device->ops;
    const size_t ample = tr_plus(a->room, a->room / 2);

    if (a->block && a->room >= bytes)
        return true;
    if (a->block)
        ops->release(a->device, a->block);
    a->block = NULL;
    a->room = ample;
    if (ample > bytes)
        a->block = ops->alloc(a->device, ample);
    if (!a->block) {
        a->room = bytes;
        a->block = ops->alloc(a->device, bytes);
    }
    if (!a->block)
        a->room = 0;
    return a->block;
}

bool bert_activations_fit(bert_activations *a, const bert_config *config,
                          const tr_batch *batch, bool dense)
{
    dealing trial = {.value = a->device->value_size};
    dealing earnest = trial;

    /* BLAS dimensions are int. */
    if (batch->n_rows > INT_MAX || batch->n_mlm > INT_MAX
        || batch->n_seq > INT_MAX)
        return false;
    deal_out(&trial, a, config, batch, dense);
    if (trial.too_large || !grow(a, trial.used))
        return false;
    a->used = trial.used;
    earnest.block = a->block;
    deal_out(&earnest, a, config, batch, dense);
    return true;
}

void bert_activations_poison(bert_activations *a, bool all)
{
    const size_t start = all ? 0 : a->scratch_start;

    a->device->ops->fill(a->device, a->block + start, 0xff, a->used - start);
}
