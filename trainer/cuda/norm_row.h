/*
 * norm_row.h - layer norm or RMS norm of a row, computed by a block.
 *
 * Each thread holds K bunches of N columns in registers, so a row is read from
 * memory only once.  A bunch is 16 bytes, or one number.
 *
 * There are two variants of each kernel, because one with the options of all
 * models would spill registers.  BIASED kernels are BERT's: layer norms with a
 * bias, of whole rows, with dropout.  The others have no bias and no dropout,
 * but can be RMS norms, norms of heads, and add to the residual stream.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_NORM_ROW_H
#define TR_CUDA_NORM_ROW_H

#include <type_traits>

#include "cuda/kernel.h"

#define ROW_THREADS 512
#define ROW_COLUMNS 16 /* maximum columns per thread */
static_assert(ROW_THREADS * ROW_COLUMNS == TR_CUDA_HIDDEN_MAX,
              "the widest row");

template <int N> static inline __device__ unsigned column_of(int k)
{
    return (k * blockDim.x + threadIdx.x) * N;
}

/*
 * The rows of a norm: adjacent rows or, with `heads` above 1, the heads at the
 * start of rows that are `stride` values apart.  The rows of `hat` are always
 * adjacent.
 */
struct norm_rows {
    unsigned heads;
    size_t stride;
};

/* The index of the first number of a norm's row. */
static inline __device__ size_t row_at(const norm_rows &rows, size_t row,
                                       unsigned width)
{
    return rows.heads > 1 ? (unsigned)row / rows.heads * rows.stride
                                + (unsigned)row % rows.heads * width
                          : row * rows.stride;
}

/* Parameters and outputs of a norm. */
template <typename value> struct norm_out {
    unsigned width;
    norm_rows rows; /* of x and y */
    real epsilon;
    bool rms;
    const real *gain;
    const real *bias; /* NULL if not BIASED */
    value *hat;
    real *inverse;
    value *y;
};

/* Replaces x by the normalised row; y = dropout(x * gain + bias). */
template <typename value, int N, int K, bool BIASED>
static inline __device__ void norm_row(const norm_out<value> &out, size_t row,
                                       const dropout_row &dropout,
                                       real (&x)[K][N])
{
    const size_t at = row * out.width;
    const size_t y_at = BIASED ? at : row_at(out.rows, row, out.width);
    real sum[1] = {0};
    real mean = 0, inverse;

    if (BIASED || !out.rms) {
#pragma unroll
        for (int k = 0; k < K; k++)
            for (int j = 0; j < N; j++)
                sum[0] += column_of<N>(k) < out.width ? x[k][j] : 0;
        block_sums(sum);
        mean = sum[0] / (real)out.width;
        sum[0] = 0;
    }
#pragma unroll
    for (int k = 0; k < K; k++)
        for (int j = 0; j < N; j++)
            sum[0] += column_of<N>(k) < out.width
                          ? (x[k][j] - mean) * (x[k][j] - mean)
                          : 0;
    block_sums(sum);
    inverse = 1 / sqrt(sum[0] / (real)out.width + out.epsilon);
    if (threadIdx.x == 0)
        out.inverse[row] = inverse;
#pragma unroll
    for (int k = 0; k < K; k++) {
        const unsigned i = column_of<N>(k);
        real gain[N], y[N] = {};

        if (i >= out.width)
            break;
        load<N>(out.gain + i, gain);
        if (BIASED)
            load<N>(out.bias + i, y);
        for (int j = 0; j < N; j++) {
            x[k][j] = (x[k][j] - mean) * inverse;
            y[j] += x[k][j] * gain[j];
            if (BIASED && dropout.threshold)
                y[j] = drop(dropout, i + j, y[j]);
        }
        store<N>(x[k], out.hat + at + i);
        store<N>(y, out.y + y_at + i);
    }
}

template <typename value>
static norm_out<value> norm_out_of(const tr_norm *norm,
                                   const tr_norm_kept *kept, void *y)
{
    return {(unsigned)norm->width,
            {1, norm->width},
            (real)norm->epsilon,
            norm->rms,
            norm->gain,
            norm->bias,
            (value *)kept->hat,
            kept->inverse,
            (value *)y};
}

/* Passes N and K to a function as a type. */
template <int N_, int K_> struct row_shape {
    static constexpr int N = N_;
    static constexpr int K = K_;
};

/*
 * Calls f(shape, threads) with a shape for rows of this width.  `wide` is true
 * if all arrays are aligned to 16 bytes.
 */
template <typename value, typename F>
static void by_width(tr_cuda *c, size_t width, bool wide, F f)
{
    constexpr int N = WIDE<value>, K = ROW_COLUMNS / N;
    const size_t bunches = width / N;

    if (width > ROW_THREADS * ROW_COLUMNS)
        tr_cuda_good(c, cudaErrorInvalidValue, "rows too wide");
    else if (wide && width % N == 0 && bunches <= ROW_THREADS)
        f(row_shape<N, 1>(), threads_of(bunches, ROW_THREADS));
    else if (wide && width % N == 0)
        f(row_shape<N, K>(), threads_of(blocks_of(bunches, K), ROW_THREADS));
    else if (width <= 2 * ROW_THREADS)
        f(row_shape<1, 2>(), threads_of(blocks_of(width, 2), ROW_THREADS));
    else
        f(row_shape<1, ROW_COLUMNS>(),
          threads_of(blocks_of(width, ROW_COLUMNS), ROW_THREADS));
}

/* Calls f(std::true_type()) or f(std::false_type()). */
template <typename F> static void by_bias(bool biased, F f)
{
    if (biased)
        f(std::true_type());
    else
        f(std::false_type());
}

/* Arguments of backward; dx may be dy, unless `adds` is set. */
template <typename value> struct norm_back {
    size_t rows;
    unsigned width;
    norm_rows in; /* rows of dy and dx */
    bool rms;
    const real *gain;
    const value *hat;
    const real *inverse;
    const value *dy;
    value *dx;
    bool adds;           /* dx is added to */
    value *d_branch;     /* receives dx after `dropout`; may be NULL */
    tr_dropout before; /* dropout applied to dy */
    tr_dropout dropout;
    uint32_t site;
};

/* The arguments of a norm without dropout. */
template <typename value>
static norm_back<value> norm_back_of(const tr_norm *norm, size_t rows,
                                     const tr_norm_kept *kept, const void *dy,
                                     void *dx)
{
    norm_back<value> back = {};

    back.rows = rows;
    back.width = (unsigned)norm->width;
    back.in = {1, norm->width};
    back.rms = norm->rms;
    back.gain = norm->gain;
    back.hat = (const value *)kept->hat;
    back.inverse = kept->inverse;
    back.dy = (const value *)dy;
    back.dx = (value *)dx;
    return back;
}

/* Computes backward, including the gradients of gain and bias (norm.cu). */
template <typename value>
void tr_norm_backward_rows(tr_cuda *c, const tr_norm *norm,
                           norm_back<value> back);

extern template void tr_norm_backward_rows(tr_cuda *, const tr_norm *,
                                           norm_back<real>);
extern template void tr_norm_backward_rows(tr_cuda *, const tr_norm *,
                                           norm_back<__nv_bfloat16>);

#endif /* TR_CUDA_NORM_ROW_H */
