/*
 * gelu.cu - GELU in its tanh form (cpu/activation.h).
 *
 * In bfloat16, cuBLASLt applies GELU as part of a product.  Its documentation
 * does not say which form it uses.  The two forms differ by less than 5e-4,
 * which is lost when values are rounded to bfloat16.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cuda/kernel.h"

static inline __device__ real half_of(real x)
{
    const real twice_root = (real)1.5957691216057307117597842397375;

    return 1 / (1 + exp(-twice_root * (x + (real)0.044715 * x * x * x)));
}

/* Grid and block: N numbers per thread.  y = gelu(u) */
template <typename value, int N>
static __global__ void __launch_bounds__(THREADS)
gelu_kernel(size_t n, const value *u, value *y)
{
    const long long at = ((long long)blockIdx.x * blockDim.x + threadIdx.x) * N;
    real x[N];

    load_within<N>(u, at, 0, (long long)n, 0, x);
    for (int j = 0; j < N; j++)
        x[j] *= half_of(x[j]);
    store_within<N>(x, y, at, 0, (long long)n);
}

/* Replaces dy by du.  Grid and block: N numbers per thread. */
template <typename value, int N>
static __global__ void __launch_bounds__(THREADS)
gelu_backward_kernel(size_t n, const value *u, value *dy)
{
    const long long at = ((long long)blockIdx.x * blockDim.x + threadIdx.x) * N;
    real x[N], d[N];

    load_within<N>(u, at, 0, (long long)n, 0, x);
    load_within<N>(dy, at, 0, (long long)n, 0, d);
    for (int j = 0; j < N; j++) {
        const real s = half_of(x[j]);
        const real slope = (real)1.5957691216057307117597842397375
                           * (1 + 3 * (real)0.044715 * x[j] * x[j]);

        d[j] *= s + x[j] * s * (1 - s) * slope;
    }
    store_within<N>(d, dy, at, 0, (long long)n);
}

/* Uses N numbers per thread if the arrays are aligned, otherwise one. */
template <typename value>
static void launch_numbers(tr_cuda *c, const char *name, size_t n,
                           void (*wide)(size_t, const value *, value *),
                           void (*single)(size_t, const value *, value *),
                           const void *u, void *y)
{
    const bool all = aligned(u, y);

    launch(c, c->stream, name,
           dim3(blocks_of(n, all ? THREADS * WIDE<value> : THREADS)), THREADS,
           0, all ? wide : single, n, (const value *)u, (value *)y);
}

void tr_cuda_gelu(tr_cuda *c, size_t n, const void *u, void *y)
{
    by_value(c, [&](auto v) {
        using value = decltype(v);

        launch_numbers<value>(c, "GELU", n, gelu_kernel<value, WIDE<value>>,
                              gelu_kernel<value, 1>, u, y);
    });
}

void tr_cuda_gelu_backward(tr_device *device, tr_activation act, size_t n,
                           const void *u, void *dy)
{
    tr_cuda *const c = cuda_of(device);

    tr_cuda_takes(c, act == TR_GELU_TANH, "GELU backward");
    by_value(c, [&](auto v) {
        using value = decltype(v);

        launch_numbers<value>(c, "GELU backward", n,
                              gelu_backward_kernel<value, WIDE<value>>,
                              gelu_backward_kernel<value, 1>, u, dy);
    });
}

void tr_cuda_gelu_ops(tr_ops *ops)
{
    ops->gelu_backward = tr_cuda_gelu_backward;
}
