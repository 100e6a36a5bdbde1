/*
 * gemm.c - multithreaded matrix products.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cpu/gemm.h"

#include "cpu/blas.h"

/* Large enough for an efficient BLAS, small enough to balance the threads. */
#define TILE_ROWS 256
#define TILE_COLUMNS 512

static size_t tiles(size_t n, size_t tile)
{
    return n / tile + (n % tile != 0);
}

static size_t min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void multiply_tile(const tr_product *p, size_t row, size_t column)
{
    const size_t m = min(TILE_ROWS, p->m - row);
    const size_t n = min(TILE_COLUMNS, p->n - column);
    const size_t b_width = p->b_turned ? p->k : p->n;
    const real *const a = p->a + (p->a_turned ? row : row * p->a_stride);
    const real *const b = p->b + (p->b_turned ? column * b_width : column);

    tr_gemm(CblasRowMajor, p->a_turned ? CblasTrans : CblasNoTrans,
            p->b_turned ? CblasTrans : CblasNoTrans, (blasint)m,
            (blasint)n, (blasint)p->k, 1, a, (blasint)p->a_stride, b,
            (blasint)b_width, p->beta, p->c + row * p->c_stride + column,
            (blasint)p->c_stride);
}

void tr_multiply(const tr_product *p)
{
    const size_t across = tiles(p->n, TILE_COLUMNS);
    const size_t all = tiles(p->m, TILE_ROWS) * across;

#pragma omp parallel for schedule(dynamic)
    for (size_t i = 0; i < all; i++)
        multiply_tile(p, i / across * TILE_ROWS, i % across * TILE_COLUMNS);
}
