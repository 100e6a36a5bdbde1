/*
 * columns.c - column sums of a matrix.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cpu/columns.h"

#include "cpu/vector.h"

/* Columns that a thread sums at a time. */
#define BLOCK 128

TR_VECTORS
static void add_row(size_t n, const real *x, double *sums)
{
    for (size_t i = 0; i < n; i++)
        sums[i] += (double)x[i];
}

TR_VECTORS
static void add_products(size_t n, const real *x, const real *y,
                         double *sums)
{
    for (size_t i = 0; i < n; i++)
        sums[i] += (double)(x[i] * y[i]);
}

static void sum_block(size_t rows, size_t columns, size_t stride,
                      const real *x, const real *y, size_t first, int beta,
                      real *sums)
{
    const size_t n = columns - first < BLOCK ? columns - first : BLOCK;
    double block[BLOCK] = {0};

    for (size_t i = 0; beta && i < n; i++)
        block[i] = (double)sums[first + i];
    for (size_t r = 0; r < rows; r++) {
        const size_t at = r * stride + first;

        if (y)
            add_products(n, x + at, y + at, block);
        else
            add_row(n, x + at, block);
    }
    for (size_t i = 0; i < n; i++)
        sums[first + i] = (real)block[i];
}

static void sum_blocks(size_t rows, size_t columns, size_t stride,
                       const real *x, const real *y, int beta, real *sums)
{
#pragma omp parallel for schedule(dynamic)
    for (size_t first = 0; first < columns; first += BLOCK)
        sum_block(rows, columns, stride, x, y, first, beta, sums);
}

void tr_columns_sum_products(size_t rows, size_t columns, const real *x,
                             const real *y, int beta, real *sums)
{
    sum_blocks(rows, columns, columns, x, y, beta, sums);
}

void tr_columns_sum(size_t rows, size_t columns, size_t stride,
                    const real *x, int beta, real *sums)
{
    sum_blocks(rows, columns, stride, x, NULL, beta, sums);
}
