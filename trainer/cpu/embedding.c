/*
 * embedding.c - the model's input: word vectors or, in BERT, the sum of word,
 * position and type vectors, then layer norm and dropout.
 *
 * Positions are looked up like words, because they restart with each sequence
 * of a pack.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cpu/device.h"

#include <string.h>

#include "cpu/dropout_rows.h"
#include "cpu/layernorm.h"
#include "cpu/vector.h"

/* Columns that a thread scatters at a time. */
#define BLOCK 64

TR_VECTORS
static void sum_row(size_t n, const real *word, const real *position,
                    const real *type, real *restrict y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = word[i] + position[i] + type[i];
}

void tr_cpu_embed_forward(tr_device *d, const tr_tables *tables,
                          const tr_norm *norm, const tr_batch *batch,
                          const tr_dropout *dropout, uint32_t site,
                          const tr_norm_kept *kept, void *y)
{
    const size_t n = norm->width;
    real *const to = y;

    (void)d;
#pragma omp parallel for schedule(static)
    for (size_t r = 0; r < batch->n_rows; r++) {
        real *const hat = (real *)kept->hat + r * n;

        sum_row(n, tables->word + (size_t)batch->token[r] * n,
                tables->position + (size_t)batch->position[r] * n,
                tables->type + (size_t)batch->type[r] * n, hat);
        tr_norm_row(norm, hat, kept->inverse + r, to + r * n);
        if (dropout->threshold)
            tr_dropout_apply(dropout, tr_dropout_at_row(dropout, site, r),
                             n, to + r * n, to + r * n);
    }
}

TR_VECTORS
static void add_to(size_t n, const real *restrict dx, real *restrict sum)
{
    for (size_t i = 0; i < n; i++)
        sum[i] += dx[i];
}

/*
 * Adds row i of dx to row index[i] of `gradient`.  Each thread has its own
 * columns and adds the rows in order, so there are no races, and results do not
 * depend on the number of threads.
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

void tr_cpu_embed_backward(tr_device *d, const tr_tables *tables,
                           const tr_norm *norm, const tr_batch *batch,
                           const tr_dropout *dropout, uint32_t site,
                           const tr_norm_kept *kept, void *dy)
{
    const tr_dropout none = {.threshold = 0};
    const size_t rows = batch->n_rows;
    const size_t n = norm->width;

    if (dropout->threshold)
        tr_dropout_rows(dropout, site, rows, n, dy, dy);
    tr_cpu_norm_backward(d, norm, rows, kept, dy, &none, 0, dy, NULL);
    scatter(rows, n, batch->token, dy, tables->word_gradient);
    scatter(rows, n, batch->position, dy, tables->position_gradient);
    scatter(rows, n, batch->type, dy, tables->type_gradient);
}

void tr_cpu_lookup_forward(tr_device *d, size_t rows, size_t width,
                           const int32_t *token, const real *table, void *y)
{
    real *const to = y;

    (void)d;
#pragma omp parallel for schedule(static)
    for (size_t r = 0; r < rows; r++)
        memcpy(to + r * width, table + (size_t)token[r] * width,
               width * sizeof *to);
}

void tr_cpu_lookup_backward(tr_device *d, size_t rows, size_t width,
                            const int32_t *token, const void *dy,
                            real *table_gradient)
{
    (void)d;
    scatter(rows, width, token, dy, table_gradient);
}
