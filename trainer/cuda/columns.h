/*
 * columns.h - column sums of a matrix: first over slices of rows, then over the
 * slices, in double precision.  The order depends on the shape alone.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_COLUMNS_H
#define TR_CUDA_COLUMNS_H

#include "cuda/kernel.h"

/* Block size of kernels that sum one column per lane. */
#define COLUMN_WARPS 8
#define COLUMN_THREADS (32 * COLUMN_WARPS)

/*
 * Sums column `column` of n rows with row stride `stride`, using a block of
 * WARPS warps, each of which adds every WARPS-th row.  Warp 0 receives the sum.
 * All threads must call this; lanes with `in` false only synchronise.
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
 * Sums the columns of `partial`: the first `width` columns into `first`, and
 * the next `width` columns into `second` unless `second` is NULL.  The sums are
 * added to beta times the numbers there; beta is 0 or 1.
 */
void tr_columns_sum_partials(tr_cuda *c, size_t n, size_t width,
                             const real *partial, int beta, real *first,
                             real *second);

/* Sets `to` to the column sums of x, with row stride `stride`, plus beta times
 * itself. */
template <typename value>
void tr_columns_sum(tr_cuda *c, size_t rows, size_t columns, size_t stride,
                    const value *x, int beta, real *to);

extern template void tr_columns_sum(tr_cuda *, size_t, size_t, size_t,
                                    const real *, int, real *);
extern template void tr_columns_sum(tr_cuda *, size_t, size_t, size_t,
                                    const __nv_bfloat16 *, int, real *);

#endif /* TR_CUDA_COLUMNS_H */
