/*
 * dropout_rows.c - dropout on rows: zero some values, scale up the others.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cpu/dropout_rows.h"

#include "cpu/vector.h"

TR_VECTORS
static void apply(tr_dropout_key key, uint32_t threshold, real scale,
                  uint32_t n, const real *x, real *y)
{
#pragma omp simd
    for (uint32_t i = 0; i < n; i++)
        y[i] = tr_dropout_keeps(key, i, threshold) ? x[i] * scale : 0;
}

void tr_dropout_apply(const tr_dropout *dropout, tr_dropout_key key,
                      size_t n, const real *x, real *y)
{
    apply(key, dropout->threshold, dropout->scale, (uint32_t)n, x, y);
}

TR_VECTORS
static void sum(tr_dropout_key key, uint32_t threshold, real scale,
                uint32_t n, const real *residual, const real *x,
                const real *bias, real *restrict y)
{
#pragma omp simd
    for (uint32_t i = 0; i < n; i++)
        y[i] = residual[i]
               + (tr_dropout_keeps(key, i, threshold)
                      ? (x[i] + bias[i]) * scale
                      : 0);
}

void tr_dropout_sum(const tr_dropout *dropout, tr_dropout_key key,
                    size_t n, const real *residual, const real *x,
                    const real *bias, real *y)
{
    sum(key, dropout->threshold, dropout->scale, (uint32_t)n, residual, x,
        bias, y);
}

/* One draw decides columns i and i + TR_DRAW_BIT; the last are drawn singly. */
TR_VECTORS
static void mark(tr_dropout_key key, uint32_t threshold, uint32_t row,
                 uint32_t n, real *x)
{
    const unsigned bit = (row & TR_DRAW_BIT) != 0;
    uint32_t first = 0;

    for (; n - first >= 2 * TR_DRAW_BIT; first += 2 * TR_DRAW_BIT) {
        real *const low = x + first, *const high = low + TR_DRAW_BIT;

        for (uint32_t i = 0; i < TR_DRAW_BIT; i++) {
            const uint32_t word = tr_dropout_draw(key, first + i).row[bit];

            low[i] = tr_dropout_stays(word, 0, threshold) ? low[i] : -low[i];
            high[i] = tr_dropout_stays(word, 1, threshold) ? high[i]
                                                             : -high[i];
        }
    }
    for (; first < n; first++)
        if (!tr_dropout_score_stays(key, row, first, threshold))
            x[first] = -x[first];
}

void tr_dropout_mark(const tr_dropout *dropout, tr_dropout_key key,
                     size_t row, size_t n, real *x)
{
    mark(key, dropout->threshold, (uint32_t)row, (uint32_t)n, x);
}

TR_VECTORS
static void marked(size_t n, real scale, const real *restrict x,
                   real *restrict y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] > 0 ? x[i] * scale : 0;
}

void tr_dropout_marked(const tr_dropout *dropout, size_t n,
                       const real *x, real *y)
{
    marked(n, dropout->scale, x, y);
}

void tr_dropout_rows(const tr_dropout *dropout, uint32_t site,
                     size_t rows, size_t columns, const real *x, real *y)
{
#pragma omp parallel for schedule(static)
    for (size_t r = 0; r < rows; r++)
        tr_dropout_apply(dropout, tr_dropout_at_row(dropout, site, r),
                         columns, x + r * columns, y + r * columns);
}
