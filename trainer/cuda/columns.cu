/*
 * columns.cu - column sums of a matrix.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cuda/columns.h"

#define SLICES 64 /* maximum number of slices */
#define PARTIAL_WARPS 32

/* Grid: 32 columns per block; block: PARTIAL_WARPS warps. */
static __global__ void __launch_bounds__(PARTIAL_WARPS * 32)
sum_partials_kernel(size_t n, size_t width, size_t columns,
                    const real *partial, int beta, real *first, real *second)
{
    const size_t i = (size_t)blockIdx.x * 32 + threadIdx.x % 32;
    const double sum
        = partial_sum<PARTIAL_WARPS>(partial, n, columns, i, i < columns);

    if (threadIdx.x >= 32 || i >= columns)
        return;
    real *const to = i < width ? first + i : second + (i - width);

    *to = (real)(sum + (beta ? (double)*to : 0));
}

void tr_columns_sum_partials(tr_cuda *c, size_t n, size_t width,
                             const real *partial, int beta, real *first,
                             real *second)
{
    const size_t columns = second ? 2 * width : width;

    launch(c, c->stream, "partial sums", dim3(blocks_of(columns, 32)),
           PARTIAL_WARPS * 32, 0, sum_partials_kernel, n, width, columns,
           partial, beta, first, second);
}

/*
 * Sums every gridDim.y-th row.  Grid: 32 N columns of one slice per block;
 * block: 8 warps, each of which adds every eighth row of the slice.  At the
 * end, each thread sums one column over the warps.
 */
template <typename value, int N>
static __global__ void __launch_bounds__(COLUMN_THREADS, 8)
slice_sums_kernel(size_t rows, long long columns, size_t stride,
                  const value *x, real *partial)
{
    __shared__ real part[COLUMN_WARPS][32][N + 1];
    const unsigned t = threadIdx.x, lane = t % 32, warp = t / 32;
    const long long first = (long long)blockIdx.x * 32 * N;
    const long long i = first + lane * N;
    real sum[N] = {}, all = 0;
    const auto add_rows = [&](auto load_row) {
#pragma unroll 4
        for (size_t r = blockIdx.y + (size_t)gridDim.y * warp; r < rows;
             r += (size_t)gridDim.y * COLUMN_WARPS) {
            real one[N];

            load_row(x + r * stride, one);
            for (int j = 0; j < N; j++)
                sum[j] += one[j];
        }
    };

    if (i + N <= columns)
        add_rows([&](const value *row, real (&one)[N]) {
            load<N>(row + i, one);
        });
    else if (i < columns)
        add_rows([&](const value *row, real (&one)[N]) {
            load_within<N>(row, i, 0, columns, 0, one);
        });
    for (int j = 0; j < N; j++)
        part[warp][lane][j] = sum[j];
    __syncthreads();
    if (t >= 32 * N || first + t >= columns)
        return;
    for (int w = 0; w < COLUMN_WARPS; w++)
        all += part[w][t / N][t % N];
    partial[blockIdx.y * columns + first + t] = all;
}

template <typename value>
void tr_columns_sum(tr_cuda *c, size_t rows, size_t columns,
                    size_t stride, const value *x, int beta, real *to)
{
    constexpr int N = WIDE<value>;
    const unsigned most = blocks_of(rows, COLUMN_WARPS);
    const unsigned slices = most < SLICES ? most : SLICES;
    const bool wide = stride % N == 0 && aligned(x);
    real *const partial = (real *)tr_cuda_scratch(
        c, slices * columns * sizeof(real));

    if (partial == NULL)
        return;
    launch(c, c->stream, "sums of columns",
           dim3(blocks_of(columns, wide ? 32 * N : 32), slices), COLUMN_THREADS,
           0, wide ? slice_sums_kernel<value, N> : slice_sums_kernel<value, 1>,
           rows, columns, stride, x, partial);
    tr_columns_sum_partials(c, slices, columns, partial, beta, to, NULL);
}

template void tr_columns_sum(tr_cuda *, size_t, size_t, size_t,
                             const real *, int, real *);
template void tr_columns_sum(tr_cuda *, size_t, size_t, size_t,
                             const __nv_bfloat16 *, int, real *);
