/*
 * kernel.h - helpers for kernels: 16-byte loads and stores, sums over warps and
 * blocks, dropout.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_KERNEL_H
#define TR_CUDA_KERNEL_H

#include <math.h>

#include "cuda/device.h"
#include "model/dropout.h"

#define ALL_LANES 0xffffffffu
#define THREADS 256 /* default block size */

/* ---- Numbers ---- */

static inline __device__ real to_real(float x)
{
    return x;
}

static inline __device__ real to_real(double x)
{
    return (real)x;
}

static inline __device__ real to_real(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

static inline __device__ void from_real(real x, real *to)
{
    *to = x;
}

static inline __device__ void from_real(real x, __nv_bfloat16 *to)
{
    *to = __float2bfloat16((float)x);
}

/* Numbers of type T in one 16-byte access. */
template <typename T> static constexpr int WIDE = 16 / (int)sizeof(T);

/* N numbers that are loaded or stored at once. */
template <typename T, int N> struct alignas(N * sizeof(T)) bunch {
    T v[N];
};

/* Loads N numbers.  p must be aligned to min(their total size, 16 bytes). */
template <int N, typename T>
static inline __device__ void load(const T *p, real (&x)[N])
{
    constexpr int M = N < WIDE<T> ? N : WIDE<T>;

#pragma unroll
    for (int i = 0; i < N; i += M) {
        const bunch<T, M> b = *(const bunch<T, M> *)(p + i);

#pragma unroll
        for (int j = 0; j < M; j++)
            x[i + j] = to_real(b.v[j]);
    }
}

template <int N, typename T>
static inline __device__ void store(const real (&x)[N], T *p)
{
    constexpr int M = N < WIDE<T> ? N : WIDE<T>;

#pragma unroll
    for (int i = 0; i < N; i += M) {
        bunch<T, M> b;

#pragma unroll
        for (int j = 0; j < M; j++)
            from_real(x[i + j], &b.v[j]);
        *(bunch<T, M> *)(p + i) = b;
    }
}

/*
 * Loads N numbers from p + at, which must be aligned as above.  Only numbers
 * `begin` to `end` - 1 exist; the others are read as `absent`.
 */
template <int N, typename T>
static inline __device__ void load_within(const T *p, long long at,
                                          long long begin, long long end,
                                          real absent, real (&x)[N])
{
    if (at >= begin && at + N <= end) {
        load<N>(p + at, x);
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        x[i] = at + i >= begin && at + i < end ? to_real(p[at + i]) : absent;
}

template <int N, typename T>
static inline __device__ void store_within(const real (&x)[N], T *p,
                                           long long at, long long begin,
                                           long long end)
{
    if (at >= begin && at + N <= end) {
        store<N>(x, p + at);
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        if (at + i >= begin && at + i < end)
            from_real(x[i], p + at + i);
}

/* ---- Sums ---- */

/* Returns the sum to all lanes.  The order of additions is fixed. */
template <typename T> static inline __device__ T warp_sum(T x)
{
    for (int by = 16; by; by /= 2)
        x += __shfl_xor_sync(ALL_LANES, x, by);
    return x;
}

template <typename T> static inline __device__ T warp_max(T x)
{
    for (int by = 16; by; by /= 2) {
        const T other = __shfl_xor_sync(ALL_LANES, x, by);

        x = other > x ? other : x;
    }
    return x;
}

/* Replaces each x[m] by its sum over a block of at most 32 whole warps. */
template <int M, typename T> static inline __device__ void block_sums(T (&x)[M])
{
    __shared__ T part[M][32];
    const int lane = threadIdx.x % 32;

#pragma unroll
    for (int m = 0; m < M; m++)
        x[m] = warp_sum(x[m]);
    if (blockDim.x == 32)
        return;
    __syncthreads(); /* `part` may still be read by an earlier call */
    if (lane == 0)
        for (int m = 0; m < M; m++)
            part[m][threadIdx.x / 32] = x[m];
    __syncthreads();
#pragma unroll
    for (int m = 0; m < M; m++)
        x[m] = warp_sum(lane < (int)blockDim.x / 32 ? part[m][lane] : T(0));
}

static inline __device__ real block_max(real x)
{
    __shared__ real part[32];
    const int lane = threadIdx.x % 32;

    x = warp_max(x);
    if (blockDim.x == 32)
        return x;
    __syncthreads();
    if (lane == 0)
        part[threadIdx.x / 32] = x;
    __syncthreads();
    return warp_max(part[lane < (int)blockDim.x / 32 ? lane : 0]);
}

/* ---- Dropout ---- */

/* Dropout parameters of a row. */
struct dropout_row {
    tr_dropout_key key;
    uint32_t threshold; /* 0: none */
    real scale;
};

static inline __device__ dropout_row dropout_of(const tr_dropout &dropout,
                                                uint32_t site, uint64_t row)
{
    return {tr_dropout_at_row(&dropout, site, row), dropout.threshold,
            dropout.scale};
}

/* Applies dropout to x, the value in this column. */
static inline __device__ real drop(const dropout_row &row, uint32_t column,
                                   real x)
{
    return tr_dropout_keeps(row.key, column, row.threshold) ? x * row.scale
                                                              : real(0);
}

/* ---- Shapes of launches ---- */

static inline unsigned blocks_of(size_t n, size_t each)
{
    return (unsigned)(n / each + (n % each != 0));
}

/* Number of threads for n items: whole warps, at most `most`. */
static inline unsigned threads_of(size_t n, unsigned most)
{
    return n < most ? blocks_of(n ? n : 1, 32) * 32 : most;
}

/* True if all pointers are aligned to 16 bytes.  NULL counts as aligned. */
template <typename... P> static bool aligned(const P *...p)
{
    return (((uintptr_t)p % 16 == 0) && ...);
}

#endif /* TR_CUDA_KERNEL_H */
