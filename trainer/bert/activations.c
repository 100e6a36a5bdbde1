/*
 * activations.c - numbers that live from a forward to its backward.
 *
 * SPDX-License-Identifier: MIT
 */
#include "activations.h"

#include <limits.h>
#include <omp.h>
#include <stdint.h>
#include <stdlib.h>

#include "attention.h"
#include "sizes.h"

/* Every array starts at a multiple of so many numbers: a cache line. */
#define LINE (64 / sizeof(real))

/* An arena of more numbers than these cannot be. */
#define MAX (PTRDIFF_MAX / sizeof(real) / LINE * LINE - LINE)

/*
 * Arrays are dealt out twice: without an arena, which tells how large it has
 * to be, and then in earnest.
 */
typedef struct dealing {
    real *arena; /* or NULL */
    size_t used;
    bool too_large;
} dealing;

static void take(dealing *deal, real **place, size_t rows, size_t columns)
{
    const size_t n = bert_times(rows, columns);

    if (deal->arena)
        *place = deal->arena + deal->used;
    if (n > MAX - deal->used)
        deal->too_large = true;
    else
        deal->used += (n + LINE - 1) / LINE * LINE;
}

static void take_norm(dealing *deal, bert_norm_kept *norm, size_t rows,
                      size_t columns)
{
    take(deal, &norm->hat, rows, columns);
    take(deal, &norm->inverse, rows, 1);
}

static void take_layer(dealing *deal, bert_layer_kept *layer,
                       const bert_config *config, size_t rows,
                       size_t softmax)
{
    take(deal, &layer->qkv, rows, (size_t)3 * config->hidden);
    take(deal, &layer->softmax, softmax, 1);
    take(deal, &layer->context, rows, config->hidden);
    take_norm(deal, &layer->attention, rows, config->hidden);
    take(deal, &layer->middle, rows, config->hidden);
    take(deal, &layer->up, rows, config->intermediate);
    take_norm(deal, &layer->output, rows, config->hidden);
    take(deal, &layer->out, rows, config->hidden);
}

static void take_heads(dealing *deal, bert_mlm_kept *mlm, bert_nsp_kept *nsp,
                       const bert_config *config, const bert_batch *batch)
{
    take(deal, &mlm->in, batch->n_mlm, config->hidden);
    take(deal, &mlm->dense, batch->n_mlm, config->hidden);
    take_norm(deal, &mlm->norm, batch->n_mlm, config->hidden);
    take(deal, &mlm->out, batch->n_mlm, config->hidden);
    take(deal, &mlm->logits, batch->n_mlm, config->vocab_size);
    take(deal, &nsp->in, batch->n_seq, config->hidden);
    take(deal, &nsp->pooled, batch->n_seq, config->hidden);
    take(deal, &nsp->logits, batch->n_seq, 2);
}

static void take_scratch(dealing *deal, bert_activations *a,
                         const bert_config *config, const bert_batch *batch)
{
    bert_scratch *const s = &a->scratch;
    const size_t rows = batch->n_rows;

    take(deal, &s->d_x, rows, config->hidden);
    take(deal, &s->d_sum, rows, config->hidden);
    take(deal, &s->d_branch, rows, config->hidden);
    take(deal, &s->wide, rows, config->intermediate);
    take(deal, &s->d_wide, rows, config->intermediate);
    take(deal, &s->d_qkv, rows, (size_t)3 * config->hidden);
    take(deal, &s->attention, (size_t)s->threads, s->attention_size);
    take(deal, &a->mlm.scratch, batch->n_mlm, config->hidden);
    take(deal, &a->nsp.scratch, batch->n_seq, config->hidden);
}

static void deal_out(dealing *deal, bert_activations *a,
                     const bert_config *config, const bert_batch *batch,
                     size_t softmax)
{
    take_norm(deal, &a->embedding_norm, batch->n_rows, config->hidden);
    take(deal, &a->embedded, batch->n_rows, config->hidden);
    for (uint32_t i = 0; i < config->layers; i++)
        take_layer(deal, a->layer + i, config, batch->n_rows, softmax);
    take_heads(deal, &a->mlm, &a->nsp, config, batch);
    a->scratch_start = deal->used;
    take_scratch(deal, a, config, batch);
}

bool bert_activations_open(bert_activations *a, const bert_config *config)
{
    *a = (bert_activations){0};
    a->layer = calloc(config->layers, sizeof *a->layer);
    return a->layer;
}

void bert_activations_free(bert_activations *a)
{
    free(a->layer);
    free(a->kept_at);
    free(a->loss);
    free(a->block);
    *a = (bert_activations){0};
}

/* Room for n things and a line more. */
static void *allocate(size_t *room, size_t n, size_t size)
{
    void *const block = n > PTRDIFF_MAX / size - 64 ? NULL
                                                    : malloc(n * size + 64);

    *room = block ? n : 0;
    return block;
}

/*
 * Room for n things, at least; what was in it is lost.  It grows by half, if
 * there is memory for that, so that batches that are each a little larger
 * than those before do not want it anew each time.
 */
static void *grow(void *old, size_t *room, size_t n, size_t size)
{
    const size_t ample = bert_plus(*room, *room / 2);
    void *block = NULL;

    if (old && *room >= n)
        return old;
    free(old);
    if (ample > n)
        block = allocate(room, ample, size);
    return block ? block : allocate(room, n, size);
}

static real *aligned(void *block)
{
    const uintptr_t over = (uintptr_t)block % 64;
    void *const start = (unsigned char *)block + (over ? 64 - over : 0);

    return start;
}

static bool fit_small(bert_activations *a, const bert_batch *batch)
{
    const size_t losses = (size_t)batch->n_mlm + batch->n_seq;

    a->kept_at = grow(a->kept_at, &a->n_spans, batch->n_spans,
                      sizeof *a->kept_at);
    a->loss = grow(a->loss, &a->n_loss, losses, sizeof *a->loss);
    if (!a->kept_at || !a->loss)
        return false;
    a->mlm.loss = a->loss;
    a->nsp.loss = a->loss + batch->n_mlm;
    return true;
}

/* Numbers of a layer's softmax; also says what threads need. */
static size_t fit_attention(bert_activations *a, const bert_config *config,
                            const bert_batch *batch,
                            bert_attention attention)
{
    a->scratch.threads = omp_get_max_threads();
    if (attention == BERT_DENSE) {
        a->scratch.attention_size = bert_dense_scratch(batch);
        return bert_dense_kept(batch, config->heads);
    }
    a->scratch.attention_size = bert_varlen_scratch(batch);
    return bert_varlen_kept(batch, config->heads, a->kept_at);
}

bool bert_activations_fit(bert_activations *a, const bert_config *config,
                          const bert_batch *batch, bert_attention attention)
{
    dealing trial = {0};
    dealing real_one = {0};
    size_t softmax;

    /* The BLAS counts in int. */
    if (batch->n_rows > INT_MAX || batch->n_mlm > INT_MAX
        || batch->n_seq > INT_MAX || !fit_small(a, batch))
        return false;
    softmax = fit_attention(a, config, batch, attention);
    deal_out(&trial, a, config, batch, softmax);
    if (trial.too_large)
        return false;
    a->block = grow(a->block, &a->block_size, trial.used, sizeof *a->arena);
    if (!a->block)
        return false;
    a->arena = aligned(a->block);
    a->arena_used = trial.used;
    real_one.arena = a->arena;
    deal_out(&real_one, a, config, batch, softmax);
    return true;
}

void bert_activations_poison(bert_activations *a, bool all)
{
    for (size_t i = all ? 0 : a->scratch_start; i < a->arena_used; i++)
        a->arena[i] = (real)NAN;
}
