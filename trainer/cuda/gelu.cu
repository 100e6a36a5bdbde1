/*
 * gelu.cu - activations (cpu/activation.h), alone or as the gate of a product.
 *
 * In bfloat16, cuBLASLt applies GELU by tanh as part of a product.  Its
 * documentation does not say which form it uses.  The two forms differ by less
 * than 5e-4, which is lost when values are rounded to bfloat16.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cuda/kernel.h"

#define CUBIC ((real)0.044715)
#define TWICE_ROOT ((real)1.5957691216057307117597842397375) /* 2 sqrt(2/pi) */
#define ROOT_HALF ((real)0.70710678118654752440084436210485)
#define DENSITY ((real)0.39894228040143267793994605993438) /* of 0 */

/* Returns s(x), where act(x) = x s(x). */
static inline __device__ real share_of(tr_activation act, real x)
{
    return act == TR_GELU ? erfc(-ROOT_HALF * x) / 2
           : act == TR_SILU
               ? 1 / (1 + exp(-x))
               : 1 / (1 + exp(-TWICE_ROOT * (x + CUBIC * x * x * x)));
}

/* Returns act'(x), given s(x). */
static inline __device__ real slope_of(tr_activation act, real x, real s)
{
    return act == TR_GELU ? s + x * DENSITY * exp(-x * x / 2)
           : act == TR_SILU
               ? s + x * s * (1 - s)
               : s + x * s * (1 - s) * TWICE_ROOT * (1 + 3 * CUBIC * x * x);
}

/* ---- Alone ---- */

/* Grid and block: N numbers per thread.  y = act(u) */
template <typename value, int N>
static __global__ void __launch_bounds__(THREADS)
gelu_kernel(tr_activation act, size_t n, const value *u, value *y)
{
    const long long at = ((long long)blockIdx.x * blockDim.x + threadIdx.x) * N;
    real x[N];

    load_within<N>(u, at, 0, (long long)n, 0, x);
    for (int j = 0; j < N; j++)
        x[j] *= share_of(act, x[j]);
    store_within<N>(x, y, at, 0, (long long)n);
}

/* Replaces dy by du.  Grid and block: N numbers per thread. */
template <typename value, int N>
static __global__ void __launch_bounds__(THREADS)
gelu_backward_kernel(tr_activation act, size_t n, const value *u, value *dy)
{
    const long long at = ((long long)blockIdx.x * blockDim.x + threadIdx.x) * N;
    real x[N], d[N];

    load_within<N>(u, at, 0, (long long)n, 0, x);
    load_within<N>(dy, at, 0, (long long)n, 0, d);
    for (int j = 0; j < N; j++)
        d[j] *= slope_of(act, x[j], share_of(act, x[j]));
    store_within<N>(d, dy, at, 0, (long long)n);
}

/* Uses N numbers per thread if the arrays are aligned, otherwise one. */
template <typename value>
static void launch_numbers(tr_cuda *c, const char *name, tr_activation act,
                           size_t n,
                           void (*wide)(tr_activation, size_t, const value *,
                                        value *),
                           void (*single)(tr_activation, size_t, const value *,
                                          value *),
                           const void *u, void *y)
{
    const bool all = aligned(u, y);

    launch(c, c->stream, name,
           dim3(blocks_of(n, all ? THREADS * WIDE<value> : THREADS)), THREADS,
           0, all ? wide : single, act, n, (const value *)u, (value *)y);
}

void tr_cuda_gelu(tr_cuda *c, tr_activation act, size_t n, const void *u,
                  void *y)
{
    by_value(c, [&](auto v) {
        using value = decltype(v);

        launch_numbers<value>(c, "GELU", act, n,
                              gelu_kernel<value, WIDE<value>>,
                              gelu_kernel<value, 1>, u, y);
    });
}

void tr_cuda_gelu_backward(tr_device *device, tr_activation act, size_t n,
                           const void *u, void *dy)
{
    tr_cuda *const c = cuda_of(device);

    by_value(c, [&](auto v) {
        using value = decltype(v);

        launch_numbers<value>(c, "GELU backward", act, n,
                              gelu_backward_kernel<value, WIDE<value>>,
                              gelu_backward_kernel<value, 1>, u, dy);
    });
}

/* ---- As the gate of a product ---- */

/* Grid: one row per block; block: up to THREADS, N columns per thread. */
template <typename value, int N>
static __global__ void __launch_bounds__(THREADS)
gate_kernel(tr_activation act, size_t width, const value *u, value *y)
{
    const value *const from = u + 2 * blockIdx.x * width;

    for (size_t i = threadIdx.x * N; i < width; i += blockDim.x * N) {
        real x[N], by[N];

        load<N>(from + i, x);
        load<N>(from + width + i, by);
        for (int j = 0; j < N; j++)
            x[j] *= share_of(act, x[j]) * by[j];
        store<N>(x, y + blockIdx.x * width + i);
    }
}

static void gate_forward(tr_device *d, tr_activation act, size_t rows,
                         size_t width, const void *u, void *y)
{
    by_value(cuda_of(d), [&](auto v) {
        using value = decltype(v);
        constexpr int N = WIDE<value>;
        const bool wide = width % N == 0 && aligned(u, y);

        launch(cuda_of(d), cuda_of(d)->stream, "gate", dim3((unsigned)rows),
               threads_of(wide ? width / N : width, THREADS), 0,
               wide ? gate_kernel<value, N> : gate_kernel<value, 1>, act,
               width, (const value *)u, (value *)y);
    });
}

/* Grid: one row per block; block: up to THREADS, N columns per thread. */
template <typename value, int N>
static __global__ void __launch_bounds__(THREADS)
gate_backward_kernel(tr_activation act, size_t width, const value *u,
                     const value *dy, value *du)
{
    const size_t at = 2 * blockIdx.x * width;

    for (size_t i = threadIdx.x * N; i < width; i += blockDim.x * N) {
        real x[N], by[N], d[N];

        load<N>(u + at + i, x);
        load<N>(u + at + width + i, by);
        load<N>(dy + blockIdx.x * width + i, d);
        for (int j = 0; j < N; j++) {
            const real s = share_of(act, x[j]);

            by[j] *= d[j] * slope_of(act, x[j], s);
            d[j] *= x[j] * s;
        }
        store<N>(by, du + at + i);
        store<N>(d, du + at + width + i);
    }
}

static void gate_backward(tr_device *device, tr_activation act, size_t rows,
                          size_t width, const void *u, const void *dy,
                          void *du)
{
    tr_cuda *const c = cuda_of(device);

    by_value(c, [&](auto v) {
        using value = decltype(v);
        constexpr int N = WIDE<value>;
        const bool wide = width % N == 0 && aligned(u, dy, du);

        launch(c, c->stream, "gate backward", dim3((unsigned)rows),
               threads_of(wide ? width / N : width, THREADS), 0,
               wide ? gate_backward_kernel<value, N>
                    : gate_backward_kernel<value, 1>,
               act, width, (const value *)u, (const value *)dy, (value *)du);
    });
}

void tr_cuda_gelu_ops(tr_ops *ops)
{
    ops->gelu_backward = tr_cuda_gelu_backward;
    ops->gate_forward = gate_forward;
    ops->gate_backward = gate_backward;
}
