/*
 * rotary.cu - rotary positions.
 *
 * As on the CPU, the angle is rounded to a real before its sine and cosine are
 * taken.  It is then reduced to a half turn in double, because sin() of a large
 * float needs local memory.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cuda/kernel.h"

#define MOST_PAIRS 256 /* of a head */

static inline __device__ void turn(real angle, real *sine, real *cosine)
{
    const double halves = (double)angle / 3.14159265358979323846;

    sincospi((real)(halves - 2 * rint(halves / 2)), sine, cosine);
}

/* Grid: one row per block; block: up to THREADS, N pairs per thread. */
template <typename value, int N>
static __global__ void __launch_bounds__(THREADS)
rotate_kernel(tr_rotary r, const int32_t *position, bool back, value *x)
{
    __shared__ real sine[MOST_PAIRS], cosine[MOST_PAIRS];
    const unsigned pairs = (unsigned)r.width / 2, bunches = pairs / N;
    value *const row = x + blockIdx.x * r.stride;

    for (unsigned i = threadIdx.x; i < pairs; i += blockDim.x)
        turn((real)position[blockIdx.x] * r.frequency[i], sine + i,
             cosine + i);
    __syncthreads();
    for (unsigned t = threadIdx.x; t < r.heads * bunches; t += blockDim.x) {
        const unsigned i = t % bunches * N;
        value *const first = row + t / bunches * r.width + i;
        real a[N], b[N];

        load<N>(first, a);
        load<N>(first + pairs, b);
        for (int j = 0; j < N; j++) {
            const real s = back ? -sine[i + j] : sine[i + j], old = a[j];

            a[j] = a[j] * cosine[i + j] - b[j] * s;
            b[j] = b[j] * cosine[i + j] + old * s;
        }
        store<N>(a, first);
        store<N>(b, first + pairs);
    }
}

static void rotate(tr_device *d, const tr_rotary *r, size_t rows,
                   const int32_t *position, bool back, void *x)
{
    tr_cuda *const c = cuda_of(d);
    const size_t pairs = r->width / 2;

    tr_cuda_takes(c, pairs <= MOST_PAIRS, "rotary positions");
    tr_cuda_reads(c, position);
    by_value(c, [&](auto v) {
        using value = decltype(v);
        constexpr int N = WIDE<value>;
        const bool wide = pairs % N == 0 && r->stride % N == 0 && aligned(x);

        launch(c, c->stream, "rotary positions", dim3((unsigned)rows),
               threads_of(r->heads * (wide ? pairs / N : pairs), THREADS), 0,
               wide ? rotate_kernel<value, N> : rotate_kernel<value, 1>, *r,
               position, back, (value *)x);
    });
}

void tr_cuda_rotary_ops(tr_ops *ops)
{
    ops->rotate = rotate;
}
