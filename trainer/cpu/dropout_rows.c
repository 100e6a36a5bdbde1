/*
 * dropout_rows.c - zeroes some numbers, and scales the others up.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cpu/dropout_rows.h"

#include "cpu/vector.h"

BERT_VECTORS
static void apply(bert_dropout_key key, uint32_t threshold, real scale,
                  uint32_t n, const real *x, real *y)
{
#pragma omp simd
    for (uint32_t i = 0; i < n; i++)
        y[i] = bert_dropout_keeps(key, i, threshold) ? x[i] * scale : 0;
}

void bert_dropout_apply(const bert_dropout *dropout, bert_dropout_key key,
                        size_t n, const real *x, real *y)
{
    apply(key, dropout->threshold, dropout->scale, (uint32_t)n, x, y);
}

BERT_VECTORS
static void sum(bert_dropout_key key, uint32_t threshold, real scale,
                uint32_t n, const real *residual, const real *x,
                const real *bias, real *restrict y)
{
#pragma omp simd
    for (uint32_t i = 0; i < n; i++)
        y[i] = residual[i]
               + (bert_dropout_keeps(key, i, threshold)
                      ? (x[i] + bias[i]) * scale
                      : 0);
}

void bert_dropout_sum(const bert_dropout *dropout, bert_dropout_key key,
                      size_t n, const real *residual, const real *x,
                      const real *bias, real *y)
{
    sum(key, dropout->threshold, dropout->scale, (uint32_t)n, residual, x,
        bias, y);
}

/* Two columns of each draw at a time, then the rest one by one. */
BERT_VECTORS
static void mark(bert_dropout_key key, uint32_t threshold, uint32_t row,
                 uint32_t n, real *x)
{
    const unsigned bit = (row & BERT_DRAW_BIT) != 0;
    uint32_t first = 0;

    for (; n - first >= 2 * BERT_DRAW_BIT; first += 2 * BERT_DRAW_BIT) {
        real *const low = x + first, *const high = low + BERT_DRAW_BIT;

        for (uint32_t i = 0; i < BERT_DRAW_BIT; i++) {
            const uint32_t word = bert_dropout_draw(key, first + i).row[bit];

            low[i] = bert_dropout_stays(word, 0, threshold) ? low[i] : -low[i];
            high[i] = bert_dropout_stays(word, 1, threshold) ? high[i]
                                                             : -high[i];
        }
    }
    for (; first < n; first++)
        if (!bert_dropout_score_stays(key, row, first, threshold))
            x[first] = -x[first];
}

void bert_dropout_mark(const bert_dropout *dropout, bert_dropout_key key,
                       size_t row, size_t n, real *x)
{
    mark(key, dropout->threshold, (uint32_t)row, (uint32_t)n, x);
}

BERT_VECTORS
static void marked(size_t n, real scale, const real *restrict x,
                   real *restrict y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] > 0 ? x[i] * scale : 0;
}

void bert_dropout_marked(const bert_dropout *dropout, size_t n,
                         const real *x, real *y)
{
    marked(n, dropout->scale, x, y);
}

void bert_dropout_rows(const bert_dropout *dropout, uint32_t site,
                       size_t rows, size_t columns, const real *x, real *y)
{
#pragma omp parallel for schedule(static)
    for (size_t r = 0; r < rows; r++)
        bert_dropout_apply(dropout, bert_dropout_at_row(dropout, site, r),
                           columns, x + r * columns, y + r * columns);
}
