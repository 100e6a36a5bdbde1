/*
 * columns.h - sums over the rows of a matrix, in an order that hangs on its
 * shape alone: sums of slices of rows first, then sums of these in double.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_COLUMNS_H
#define TR_CUDA_COLUMNS_H

#include "cuda/kernel.h"

/* Of a block that sums columns, a lane each. */
#define COLUMN_WARPS 8
#define COLUMN_THREADS (32 * COLUMN_WARPS)

/*
 * The sum of column `column` of n rows that lie `stride` apart, by a block of
 * WARPS, each of which has every WARPS-th row; warp 0 gets it.  All threads of
 * the block come here; lanes with `in` false only wait.
 */
template <int WARPS>
static inline __device__ double partial_sum(const real *partial, size_t n,
                                            size_t stride, size_t column,
                                            bool in)
{
    __shared__ double part[WARPS][32];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    double sum = 0;

    if (in)
        for (size_t i = warp; i < n; i += WARPS)
            sum += (double)partial[i * stride + column];
    part[warp][lane] = sum;
    __syncthreads();
    sum = part[0][lane];
    for (int i = 1; i < WARPS; i++)
        sum += part[i][lane];
    return sum;
}

/*
 * Sums of the columns of `partial`: of the first `width` in `first`, and of the
 * `width` behind them, if `second` is not NULL, in that.
 */
void tr_columns_sum_partials(tr_cuda *c, size_t n, size_t width,
                             const real *partial, real *first,
                             real *second);

/* Sums of the columns of x, whose rows lie `stride` apart, in `to`. */
template <typename value>
void tr_columns_sum(tr_cuda *c, size_t rows, size_t columns,
                    size_t stride, const value *x, real *to);

extern template void tr_columns_sum(tr_cuda *, size_t, size_t, size_t,
                                    const real *, real *);
extern template void tr_columns_sum(tr_cuda *, size_t, size_t, size_t,
                                    const __nv_bfloat16 *, real *);

#endif /* TR_CUDA_COLUMNS_H */
