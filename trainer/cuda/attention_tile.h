/*
 * attention_tile.h - products of 16 x 16 tiles by a warp, without tensor cores.
 *
 * Operands are tiles in shared memory with row stride `ld`.  Sums are
 * distributed over the warp's registers.  All lanes must call each function.
 *
 * A lane holds columns c, c + 4, c + 8 and c + 12 of rows r and r + 8 of a sum,
 * where r = lane / 4 and c = lane % 4.  Reads then have no bank conflicts if ld
 * % 32 is 4.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_ATTENTION_TILE_H
#define TR_CUDA_ATTENTION_TILE_H

#include "cuda/attention.h"
#include "cuda/kernel.h"

struct tile_sum {
    real x[2][4];
};

static inline __device__ void tile_zero(tile_sum &s)
{
    for (unsigned i = 0; i < 8; i++)
        s.x[i / 4][i % 4] = 0;
}

/* s += a b, or s += a b^T if TURNED. */
template <bool TURNED>
static inline __device__ void tile_multiply(tile_sum &s, const real *a,
                                            unsigned a_ld, const real *b,
                                            unsigned b_ld)
{
    const unsigned row = threadIdx.x % 32 / 4, column = threadIdx.x % 4;

#pragma unroll 4
    for (unsigned k = 0; k < TILE; k++) {
        const real low = a[row * a_ld + k];
        const real high = a[(row + 8) * a_ld + k];

#pragma unroll
        for (unsigned i = 0; i < 4; i++) {
            const unsigned at = column + 4 * i;
            const real x = TURNED ? b[at * b_ld + k] : b[k * b_ld + at];

            s.x[0][i] += low * x;
            s.x[1][i] += high * x;
        }
    }
}

/* Multiplies s by `by`, element by element. */
static inline __device__ void tile_scale(tile_sum &s, const tile_sum &by)
{
    for (unsigned i = 0; i < 8; i++)
        s.x[i / 4][i % 4] *= by.x[i / 4][i % 4];
}

static inline __device__ void tile_load(tile_sum &s, const real *at,
                                        unsigned ld)
{
    const unsigned row = threadIdx.x % 32 / 4, column = threadIdx.x % 4;

    for (unsigned i = 0; i < 8; i++)
        s.x[i / 4][i % 4] = at[(row + i / 4 * 8) * ld + column + i % 4 * 4];
}

static inline __device__ void tile_store(real *at, const tile_sum &s,
                                         unsigned ld)
{
    const unsigned row = threadIdx.x % 32 / 4, column = threadIdx.x % 4;

    for (unsigned i = 0; i < 8; i++)
        at[(row + i / 4 * 8) * ld + column + i % 4 * 4] = s.x[i / 4][i % 4];
}

#endif /* TR_CUDA_ATTENTION_TILE_H */
