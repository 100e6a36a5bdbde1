/*
 * gelu.cu - bias and GELU, in its tanh form: x / (1 + exp(-2 u)), see gelu.h.
 *
 * cuBLASLt could do this behind a product, but its documentation does not say
 * which of GELU's forms it computes, so it is left to these kernels.
 *
 * SPDX-License-Identifier: MIT
 */
#include "kernel.h"

#define ROW_BLOCKS 1024 /* at most, down a column of blocks */

static inline __device__ real half_of(real x)
{
    const real twice_root = (real)1.5957691216057307117597842397375;

    return 1 / (1 + exp(-twice_root * (x + (real)0.044715 * x * x * x)));
}

/*
 * Grid: N columns a thread x blocks that have every gridDim.y-th row; block:
 * up to THREADS.
 */
template <typename value, int N>
static __global__ void __launch_bounds__(THREADS)
gelu_kernel(size_t rows, size_t columns, const real *bias, const value *x,
            value *y)
{
    const size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * N;
    real shift[N];

    if (i >= columns)
        return;
    load<N>(bias + i, shift);
    for (size_t r = blockIdx.y; r < rows; r += gridDim.y) {
        real in[N];

        load<N>(x + r * columns + i, in);
        for (int j = 0; j < N; j++) {
            in[j] += shift[j];
            in[j] *= half_of(in[j]);
        }
        store<N>(in, y + r * columns + i);
    }
}

/* The same grid and block. */
template <typename value, int N>
static __global__ void __launch_bounds__(THREADS)
gelu_backward_kernel(size_t rows, size_t columns, const real *bias,
                     const value *x, value *dy, value *y)
{
    const size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * N;
    real shift[N];

    if (i >= columns)
        return;
    load<N>(bias + i, shift);
    for (size_t r = blockIdx.y; r < rows; r += gridDim.y) {
        const size_t at = r * columns + i;
        real in[N], d[N];

        load<N>(x + at, in);
        load<N>(dy + at, d);
        for (int j = 0; j < N; j++) {
            const real u = in[j] + shift[j];
            const real s = half_of(u);
            const real slope = (real)1.5957691216057307117597842397375
                               * (1 + 3 * (real)0.044715 * u * u);

            in[j] = u * s;
            d[j] *= s + in[j] * (1 - s) * slope;
        }
        store<N>(d, dy + at);
        store<N>(in, y + at);
    }
}

/* Launches `wide`, which takes N columns at once, or else `single`. */
template <int N, typename... P, typename... A>
static void launch_columns(bert_cuda *c, const char *name, bool fits,
                           size_t rows, size_t columns, void (*wide)(P...),
                           void (*single)(P...), A... given)
{
    const bool all = fits && columns % N == 0;
    const size_t n = all ? columns / N : columns;
    const unsigned threads = threads_of(n, THREADS);

    launch(c, c->stream, name,
           dim3(blocks_of(n, threads),
                rows < ROW_BLOCKS ? (unsigned)rows : ROW_BLOCKS),
           threads, 0, all ? wide : single, rows, columns, given...);
}

static void bias_gelu_forward(bert_device *d, size_t rows, size_t columns,
                              const real *bias, const void *x, void *y)
{
    bert_cuda *const c = cuda_of(d);

    by_value(c, [&](auto v) {
        using value = decltype(v);
        constexpr int N = WIDE<value>;

        launch_columns<N>(c, "GELU", aligned(bias, x, y), rows, columns,
                          gelu_kernel<value, N>, gelu_kernel<value, 1>, bias,
                          (const value *)x, (value *)y);
    });
}

static void bias_gelu_backward(bert_device *d, size_t rows, size_t columns,
                               const real *bias, const void *x, void *dy,
                               void *y)
{
    bert_cuda *const c = cuda_of(d);

    by_value(c, [&](auto v) {
        using value = decltype(v);
        constexpr int N = WIDE<value>;

        launch_columns<N>(c, "GELU backward", aligned(bias, x, dy, y), rows,
                          columns, gelu_backward_kernel<value, N>,
                          gelu_backward_kernel<value, 1>, bias,
                          (const value *)x, (value *)dy, (value *)y);
    });
}

void bert_cuda_gelu_ops(bert_ops *ops)
{
    ops->bias_gelu_forward = bias_gelu_forward;
    ops->bias_gelu_backward = bias_gelu_backward;
}
