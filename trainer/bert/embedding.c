/*
 * embedding.c - the sum of the vectors of word, position and type.
 *
 * SPDX-License-Identifier: MIT
 */
#include "embedding.h"

#include "sites.h"
#include "vector.h"

/* Columns that one thread scatters at a time. */
#define BLOCK 64

BERT_VECTORS
static void sum_row(size_t n, const real *word, const real *position,
                    const real *type, real *restrict y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = word[i] + position[i] + type[i];
}

static bert_norm norm_of(const bert_params *params)
{
    return bert_params_norm(params, BERT_EMBEDDING_GAIN,
                            BERT_EMBEDDING_BIAS);
}

void bert_embedding_forward(const bert_params *params,
                            const bert_batch *batch,
                            const bert_dropout *dropout,
                            const bert_norm_kept *kept, real *y)
{
    const bert_norm norm = norm_of(params);
    const size_t n = norm.width;
    const real *const word = bert_params_weight(params, BERT_WORD);
    const real *const position = bert_params_weight(params, BERT_POSITION);
    const real *const type = bert_params_weight(params, BERT_TYPE);

#pragma omp parallel for schedule(static)
    for (size_t r = 0; r < batch->n_rows; r++) {
        real *const hat = kept->hat + r * n;

        sum_row(n, word + (size_t)batch->token[r] * n,
                position + (size_t)batch->position[r] * n,
                type + (size_t)batch->type[r] * n, hat);
        bert_norm_row(&norm, hat, kept->inverse + r, y + r * n);
    }
    if (dropout->threshold)
        bert_dropout_rows(dropout, BERT_SITE_EMBEDDING, batch->n_rows, n, y,
                          y);
}

BERT_VECTORS
static void add_to(size_t n, const real *restrict dx, real *restrict sum)
{
    for (size_t i = 0; i < n; i++)
        sum[i] += dx[i];
}

/*
 * Adds each row of dx to the row of `gradient` that the index names.  Every
 * thread has some columns for itself and takes the rows in their order: no
 * races, and the same bits for any number of threads.
 */
static void scatter(size_t rows, size_t n, const int32_t *index,
                    const real *dx, real *gradient)
{
#pragma omp parallel for schedule(dynamic)
    for (size_t first = 0; first < n; first += BLOCK) {
        const size_t m = n - first < BLOCK ? n - first : BLOCK;

        for (size_t r = 0; r < rows; r++)
            add_to(m, dx + r * n + first,
                   gradient + (size_t)index[r] * n + first);
    }
}

void bert_embedding_backward(const bert_params *params,
                             const bert_batch *batch,
                             const bert_dropout *dropout,
                             const bert_norm_kept *kept, real *dy)
{
    const bert_norm norm = norm_of(params);
    const size_t rows = batch->n_rows;
    const size_t n = norm.width;

    if (dropout->threshold)
        bert_dropout_rows(dropout, BERT_SITE_EMBEDDING, rows, n, dy, dy);
    bert_norm_backward(&norm, rows, kept, dy, dy);
    scatter(rows, n, batch->token, dy,
            bert_params_gradient(params, BERT_WORD));
    scatter(rows, n, batch->position, dy,
            bert_params_gradient(params, BERT_POSITION));
    scatter(rows, n, batch->type, dy,
            bert_params_gradient(params, BERT_TYPE));
}
