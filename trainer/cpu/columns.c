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

/* Arguments of tr_columns_sum_heads(); if y is NULL, x alone is summed. */
typedef struct matrix {
    size_t rows, heads, columns, stride;
    const real *x;
    const real *y;
} matrix;

static void sum_block(const matrix *m, size_t first, int beta, real *sums)
{
    const size_t left = m->columns - first;
    const size_t n = left < BLOCK ? left : BLOCK;
    double block[BLOCK] = {0};

    for (size_t i = 0; beta && i < n; i++)
        block[i] = (double)sums[first + i];
    for (size_t i = 0; i < m->rows * m->heads; i++) {
        const real *const x = m->x + i / m->heads * m->stride
                              + i % m->heads * m->columns + first;

        if (m->y)
            add_products(n, x, m->y + i * m->columns + first, block);
        else
            add_row(n, x, block);
    }
    for (size_t i = 0; i < n; i++)
        sums[first + i] = (real)block[i];
}

static void sum_blocks(const matrix *m, int beta, real *sums)
{
#pragma omp parallel for schedule(dynamic)
    for (size_t first = 0; first < m->columns; first += BLOCK)
        sum_block(m, first, beta, sums);
}

void tr_columns_sum_heads(size_t rows, size_t heads, size_t columns,
                          size_t stride, const real *x, const real *y,
                          int beta, real *sums)
{
    sum_blocks(&(matrix){rows, heads, columns, stride, x, y}, beta, sums);
}

void tr_columns_sum_products(size_t rows, size_t columns, const real *x,
                             const real *y, int beta, real *sums)
{
    sum_blocks(&(matrix){rows, 1, columns, columns, x, y}, beta, sums);
}

void tr_columns_sum(size_t rows, size_t columns, size_t stride,
                    const real *x, int beta, real *sums)
{
    sum_blocks(&(matrix){rows, 1, columns, stride, x, NULL}, beta, sums);
}
