/*
 * activations.c - values that a forward pass keeps for its backward pass.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model/prenorm/activations.h"

#include <math.h>
#include <stdlib.h>

#include "model/sizes.h"

/* Logits in a chunk of the head, and the least rows: large enough for efficient
 * products.  In double, tests have several chunks. */
#ifdef TR_DOUBLE
#define CHUNK_NUMBERS ((size_t)1 << 9)
#define CHUNK_ROWS ((size_t)5)
#else
#define CHUNK_NUMBERS ((size_t)1 << 23)
#define CHUNK_ROWS ((size_t)64)
#endif

tr_attend pre_attend(const tr_config *config, const tr_batch *batch,
                     uint32_t layer, bool dense)
{
    return (tr_attend){.batch = batch,
                       .heads = config->heads,
                       .kv_heads = config->kv_heads,
                       .width = config->head_width,
                       .dense = dense,
                       .causal = config->family == TR_LLAMA,
                       .window = config->windowed[layer] ? config->window : 0};
}

/* ---- Layout ---- */

static void take_layer(tr_carve *carve, pre_layer_kept *layer,
                       const tr_config *c, size_t rows, size_t attend)
{
    const size_t width = c->head_width;

    tr_carve_norm(carve, &layer->attention, rows, c->hidden);
    layer->in = tr_carve_values(carve, rows, c->hidden);
    layer->qkv = tr_carve_values(
        carve, rows, (c->heads + 2 * (size_t)c->kv_heads) * width);
    if (c->qk_norm) {
        tr_carve_norm(carve, &layer->queries, rows * c->heads, width);
        tr_carve_norm(carve, &layer->keys, rows * c->kv_heads, width);
    }
    layer->attend = tr_carve_bytes(carve, attend);
    layer->context = tr_carve_values(carve, rows, c->heads * width);
    tr_carve_norm(carve, &layer->network, rows, c->hidden);
    layer->middle = tr_carve_values(carve, rows, c->hidden);
    layer->up = tr_carve_values(carve, rows, 2 * (size_t)c->intermediate);
    layer->gated = tr_carve_values(carve, rows, c->intermediate);
}

static void take_head(tr_carve *carve, pre_head_kept *head, const tr_config *c,
                      size_t targets)
{
    const size_t stride = tr_carve_stride(carve, c->vocab_size);
    const size_t chunk = CHUNK_NUMBERS / stride;

    head->stride = stride;
    head->chunk = chunk < CHUNK_ROWS ? CHUNK_ROWS : chunk;
    if (head->chunk > targets)
        head->chunk = targets;
    if (c->family == TR_MODERNBERT) {
        head->in = tr_carve_values(carve, targets, c->hidden);
        head->dense = tr_carve_values(carve, targets, c->hidden);
        head->active = tr_carve_values(carve, targets, c->hidden);
        tr_carve_norm(carve, &head->norm, targets, c->hidden);
    }
    head->out = tr_carve_values(carve, targets, c->hidden);
    head->loss = tr_carve_bytes(carve, tr_times(targets, sizeof(double)));
    head->right = tr_carve_bytes(carve, tr_times(targets, sizeof(int32_t)));
    head->logits = tr_carve_values(carve, head->chunk, stride);
}

static void take_scratch(tr_carve *carve, pre_scratch *s, const tr_config *c,
                         size_t rows, size_t attention)
{
    const size_t width = c->head_width;

    s->d_x = tr_carve_values(carve, rows, c->hidden);
    s->d_in = tr_carve_values(carve, rows, c->hidden);
    s->d_context = tr_carve_values(carve, rows, c->heads * width);
    s->d_qkv = tr_carve_values(
        carve, rows, (c->heads + 2 * (size_t)c->kv_heads) * width);
    s->d_gated = tr_carve_values(carve, rows, c->intermediate);
    s->d_up = tr_carve_values(carve, rows, 2 * (size_t)c->intermediate);
    s->attention = tr_carve_bytes(carve, attention);
}

void pre_activations_lay_out(void *kept, tr_carve *carve, tr_device *device,
                             const tr_config *config, const tr_batch *batch,
                             const tr_step *step)
{
    const tr_ops *const ops = device->ops;
    const size_t rows = batch->n_rows;
    pre_activations *const a = kept;
    size_t scratch = 0;

    a->x = tr_carve_values(carve, rows, config->hidden);
    a->branch = tr_carve_values(carve, rows, config->hidden);
    if (config->family == TR_MODERNBERT)
        tr_carve_norm(carve, &a->embedding, rows, config->hidden);
    for (uint32_t i = 0; i < config->layers; i++) {
        const tr_attend attend = pre_attend(config, batch, i,
                                            step->attention == TR_DENSE);
        const size_t bytes = ops->attention_scratch(device, &attend);
        /* ModernBERT's first layer reads its input after the first sum. */
        const bool own = step->recompute
                         || (i == 0 && config->family == TR_MODERNBERT);

        if (step->recompute && i > 0)
            a->layer[i] = a->layer[0];
        else
            take_layer(carve, a->layer + i, config, rows,
                       ops->attention_kept(device, &attend));
        a->layer[i].x = own ? tr_carve_values(carve, rows, config->hidden)
                            : a->x;
        scratch = bytes > scratch ? bytes : scratch;
    }
    tr_carve_norm(carve, &a->final, rows, config->hidden);
    a->out = tr_carve_values(carve, rows, config->hidden);
    take_head(carve, &a->head, config, batch->n_mlm);
    carve->scratch = carve->used;
    take_scratch(carve, &a->scratch, config, rows, scratch);
}

/* ---- Rotary frequencies ---- */

/*
 * The frequency of pair i, in float, as transformers computes it.  The rule of
 * Llama 3.1 keeps high frequencies, divides low ones by the factor, and
 * interpolates between.
 */
static real frequency_of(const tr_rope *rope, uint32_t width, uint32_t i)
{
    const float exponent = (float)(2 * i) / (float)width;
    const float plain = 1.0f / powf((float)rope->theta, exponent);
    const double wave = 2 * 3.14159265358979323846 / (double)plain;
    const double old = rope->old_positions;
    double smooth;

    if (rope->factor == 1)
        return (real)plain;
    if (rope->low_factor == 0)
        return (real)(plain / (float)rope->factor);
    if (wave > old / rope->low_factor)
        return (real)(plain / (float)rope->factor);
    if (wave < old / rope->high_factor)
        return (real)plain;
    smooth = (old / wave - rope->low_factor)
             / (rope->high_factor - rope->low_factor);
    return (real)((1 - smooth) * (double)plain / rope->factor
                  + smooth * (double)plain);
}

/* Returns device memory, or NULL. */
static real *upload_frequencies(tr_device *device, const tr_rope *rope,
                                uint32_t width)
{
    const size_t bytes = width / 2 * sizeof(real);
    real *const host = malloc(bytes);
    real *const at = host ? device->ops->alloc(device, bytes) : NULL;

    for (uint32_t i = 0; at && i < width / 2; i++)
        host[i] = frequency_of(rope, width, i);
    if (at)
        device->ops->upload(device, at, host, bytes);
    free(host);
    return at;
}

/* ---- Open and close ---- */

void *pre_activations_open(tr_device *device, const tr_config *config)
{
    pre_activations *const a = calloc(1, sizeof *a);
    const uint32_t width = config->head_width;

    if (!a)
        return NULL;
    a->layer = calloc(config->layers, sizeof *a->layer);
    a->frequency[0] = upload_frequencies(device, &config->rope, width);
    a->frequency[1] = upload_frequencies(device, &config->local_rope, width);
    if (a->layer && a->frequency[0] && a->frequency[1])
        return a;
    pre_activations_free(device, a);
    return NULL;
}

void pre_activations_free(tr_device *device, void *kept)
{
    pre_activations *const a = kept;

    free(a->layer);
    for (int i = 0; i < 2; i++)
        if (a->frequency[i])
            device->ops->release(device, a->frequency[i]);
    free(a);
}
