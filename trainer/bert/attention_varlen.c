/*
 * attention_varlen.c - attention span by span, through cu.
 *
 * SPDX-License-Identifier: MIT
 */
#include "attention_block.h"

#include <omp.h>

#include "sizes.h"

static size_t span_length(const bert_batch *batch, size_t span)
{
    return (size_t)(batch->cu[span + 1] - batch->cu[span]);
}

size_t bert_varlen_kept(const bert_batch *batch, size_t heads,
                        size_t *kept_at)
{
    size_t all = 0;

    for (size_t i = 0; i < batch->n_spans; i++) {
        const size_t n = span_length(batch, i);

        kept_at[i] = all;
        all = bert_plus(all, bert_times(heads, bert_times(n, n)));
    }
    return all;
}

size_t bert_varlen_scratch(const bert_batch *batch)
{
    return bert_times(batch->max_span, batch->max_span);
}

/* Spans without rows may be there, and have nothing to do. */
static bert_block block_of(const bert_attend *a, size_t piece)
{
    const size_t span = piece / a->heads;

    return (bert_block){
        .attend = a, .head = piece % a->heads,
        .row = (size_t)a->batch->cu[span],
        .n = span_length(a->batch, span),
        .scratch = a->scratch
                   + (size_t)omp_get_thread_num() * a->scratch_size};
}

static size_t kept_of(const bert_attend *a, size_t piece, const bert_block *b)
{
    return a->kept_at[piece / a->heads] + b->head * b->n * b->n;
}

void bert_varlen_forward(const bert_attend *a, const real *qkv, real *kept,
                         real *out)
{
    const size_t pieces = a->batch->n_spans * a->heads;

#pragma omp parallel for schedule(dynamic) num_threads(a->threads)
    for (size_t i = 0; i < pieces; i++) {
        const bert_block b = block_of(a, i);

        if (b.n)
            bert_block_forward(&b, qkv, kept + kept_of(a, i, &b), out);
    }
}

void bert_varlen_backward(const bert_attend *a, const real *qkv,
                          const real *kept, const real *d_out, real *d_qkv)
{
    const size_t pieces = a->batch->n_spans * a->heads;

#pragma omp parallel for schedule(dynamic) num_threads(a->threads)
    for (size_t i = 0; i < pieces; i++) {
        const bert_block b = block_of(a, i);

        if (b.n)
            bert_block_backward(&b, qkv, kept + kept_of(a, i, &b), d_out,
                                d_qkv);
    }
}
