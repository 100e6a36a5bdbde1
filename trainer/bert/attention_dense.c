/*
 * attention_dense.c - attention of whole packs under a block-diagonal mask.
 *
 * SPDX-License-Identifier: MIT
 */
#include "attention_block.h"

#include <omp.h>

#include "sizes.h"

size_t bert_dense_kept(const bert_batch *batch, size_t heads)
{
    return bert_times(bert_times(batch->n_packs, heads),
                      bert_dense_scratch(batch));
}

size_t bert_dense_scratch(const bert_batch *batch)
{
    return bert_times(batch->capacity, batch->capacity);
}

static bert_block block_of(const bert_attend *a, size_t piece)
{
    const size_t n = a->batch->capacity;
    const size_t row = piece / a->heads * n;

    return (bert_block){
        .attend = a, .head = piece % a->heads, .row = row, .n = n,
        .segment = a->batch->segment + row,
        .scratch = a->scratch
                   + (size_t)omp_get_thread_num() * a->scratch_size};
}

void bert_dense_forward(const bert_attend *a, const real *qkv, real *kept,
                        real *out)
{
    const size_t pieces = a->batch->n_packs * a->heads;
    const size_t size = bert_dense_scratch(a->batch);

#pragma omp parallel for schedule(dynamic) num_threads(a->threads)
    for (size_t i = 0; i < pieces; i++) {
        const bert_block b = block_of(a, i);

        bert_block_forward(&b, qkv, kept + i * size, out);
    }
}

void bert_dense_backward(const bert_attend *a, const real *qkv,
                         const real *kept, const real *d_out, real *d_qkv)
{
    const size_t pieces = a->batch->n_packs * a->heads;
    const size_t size = bert_dense_scratch(a->batch);

#pragma omp parallel for schedule(dynamic) num_threads(a->threads)
    for (size_t i = 0; i < pieces; i++) {
        const bert_block b = block_of(a, i);

        bert_block_backward(&b, qkv, kept + i * size, d_out, d_qkv);
    }
}
