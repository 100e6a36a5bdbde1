/*
 * attention.c - self-attention within sequences.
 *
 * Three methods give the same result.  Models that may use dropout keep their
 * scores, in one of two ways.  Varlen processes the spans in `cu` one by
 * one, at a cost of len^2 each, as in Zeng et al., "Boosting Distributed
 * Training Performance of the Unpadded BERT Model" (2022), section IV.A.  Dense
 * computes all L x L scores of a pack and masks the scores between rows of
 * different segments, as in Krell et al. (2021), section 3.2.
 *
 * A piece of work is one head of one block (a span or a pack).  Pieces are
 * distributed over threads, which write to disjoint memory.
 *
 * `kept` holds the softmax matrices of the blocks, one after another.
 * `scratch` holds the offset of each span's matrices, then an n x n matrix per
 * thread, where n is the length of the longest block.
 *
 * The third method, attention_tiles.c, keeps no scores.  Its pieces are the
 * heads of keys of the spans, and its scratch is a buffer per thread.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cpu/device.h"

#include <omp.h>

#include "cpu/attention_block.h"
#include "cpu/attention_tiles.h"
#include "model/sizes.h"

#define LINE 64 /* size of a cache line, in bytes */

/* True for the methods that keep scores, the only ones that have dropout. */
static bool keeps_scores(const tr_attend *a)
{
    return !a->causal && !a->window && a->kv_heads == a->heads
           && a->dropout.scale > 0;
}

static size_t span_length(const tr_batch *batch, size_t span)
{
    return (size_t)(batch->cu[span + 1] - batch->cu[span]);
}

/* Numbers in the largest block's n x n matrix. */
static size_t square_of(const tr_batch *batch, bool dense)
{
    const size_t n = dense ? batch->capacity : batch->max_span;

    return tr_times(n, n);
}

/* Size of the array of span offsets in bytes, rounded up to a cache line. */
static size_t places_of(const tr_batch *batch)
{
    return ((size_t)batch->n_spans * sizeof(size_t) + LINE - 1) / LINE * LINE;
}

/* Size of all matrices, in numbers.  Fills in their offsets if place is set. */
static size_t spread(const tr_batch *batch, size_t heads, size_t *place)
{
    size_t all = 0;

    for (size_t i = 0; i < batch->n_spans; i++) {
        const size_t n = span_length(batch, i);

        if (place)
            place[i] = all;
        all = tr_plus(all, tr_times(heads, tr_times(n, n)));
    }
    return all;
}

size_t tr_cpu_attention_kept(tr_device *d, const tr_attend *a)
{
    (void)d;
    if (!keeps_scores(a))
        return tr_tiles_kept(a);
    return tr_times(sizeof(real),
                    a->dense ? tr_times(tr_times(a->batch->n_packs, a->heads),
                                        square_of(a->batch, true))
                             : spread(a->batch, a->heads, NULL));
}

size_t tr_cpu_attention_scratch(tr_device *d, const tr_attend *a)
{
    tr_cpu *const c = tr_cpu_of(d);

    c->threads = omp_get_max_threads();
    if (!keeps_scores(a))
        return tr_times((size_t)c->threads, tr_tiles_scratch(a));
    return tr_plus(places_of(a->batch),
                   tr_times((size_t)c->threads * sizeof(real),
                            square_of(a->batch, a->dense)));
}

/* Returns the block of a piece.  It has 0 rows if the span is empty. */
static tr_block block_of(const tr_attend *a, size_t piece)
{
    const tr_batch *const batch = a->batch;
    const size_t at = piece / a->heads;
    const size_t row = a->dense ? at * batch->capacity
                                : (size_t)batch->cu[at];
    const size_t n = a->dense ? batch->capacity : span_length(batch, at);
    const size_t place = a->dense ? at * a->heads * n * n
                                  : ((size_t *)a->scratch)[at];
    unsigned char *const squares =
        (unsigned char *)a->scratch + places_of(batch);

    return (tr_block){
        .attend = a, .head = piece % a->heads, .row = row, .n = n,
        .segment = a->dense ? batch->segment + row : NULL,
        .kept = (real *)a->kept + place + piece % a->heads * n * n,
        .scratch = (real *)(void *)squares
                   + (size_t)omp_get_thread_num()
                         * square_of(batch, a->dense)};
}

/* Stores the offsets of spans.  Returns the number of pieces. */
static size_t begin(const tr_attend *a)
{
    if (a->dense)
        return a->batch->n_packs * a->heads;
    (void)spread(a->batch, a->heads, a->scratch);
    return a->batch->n_spans * a->heads;
}

/* The calling thread's buffer for tiles. */
static void *tiles_scratch(const tr_attend *a)
{
    return (unsigned char *)a->scratch
           + (size_t)omp_get_thread_num() * tr_tiles_scratch(a);
}

static void forward_tiles(int threads, const tr_attend *a, const real *qkv,
                          real *out)
{
    const size_t pieces = a->batch->n_spans * a->kv_heads;

#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (size_t i = 0; i < pieces; i++)
        tr_tiles_forward(a, i / a->kv_heads, i % a->kv_heads, qkv, out,
                         tiles_scratch(a));
}

static void backward_tiles(int threads, const tr_attend *a, const real *qkv,
                           const real *out, const real *d_out, real *d_qkv)
{
    const size_t pieces = a->batch->n_spans * a->kv_heads;

#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (size_t i = 0; i < pieces; i++)
        tr_tiles_backward(a, i / a->kv_heads, i % a->kv_heads, qkv, out,
                          d_out, d_qkv, tiles_scratch(a));
}

void tr_cpu_attention_forward(tr_device *d, const tr_attend *a,
                              const void *qkv, void *out)
{
    size_t pieces;

    if (!keeps_scores(a)) {
        if (a->dropout.threshold)
            tr_cpu_of(d)->failed = "this attention has no dropout";
        forward_tiles(tr_cpu_of(d)->threads, a, qkv, out);
        return;
    }
    pieces = begin(a);
#pragma omp parallel for schedule(dynamic) num_threads(tr_cpu_of(d)->threads)
    for (size_t i = 0; i < pieces; i++) {
        const tr_block b = block_of(a, i);

        if (b.n)
            tr_block_forward(&b, qkv, out);
    }
}

void tr_cpu_attention_backward(tr_device *d, const tr_attend *a,
                               const void *qkv, const void *out,
                               const void *d_out, void *d_qkv)
{
    size_t pieces;

    if (!keeps_scores(a)) {
        backward_tiles(tr_cpu_of(d)->threads, a, qkv, out, d_out, d_qkv);
        return;
    }
    pieces = begin(a);
#pragma omp parallel for schedule(dynamic) num_threads(tr_cpu_of(d)->threads)
    for (size_t i = 0; i < pieces; i++) {
        const tr_block b = block_of(a, i);

        if (b.n)
            tr_block_backward(&b, qkv, d_out, d_qkv);
    }
}
