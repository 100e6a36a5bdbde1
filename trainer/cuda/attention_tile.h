/*
 * attention_tile.h - products of 16 x 16 tiles, a warp at a time.
 *
 * Two kinds, which a kernel takes as its parameter.  Operands are tiles in
 * shared memory, `ld` numbers from one row to the next; sums are spread over
 * the warp's registers.  All lanes take part in every call.
 *
 *   left     a tile as it lies
 *   right    a tile as it lies
 *   turned   a tile as it lies is the transposed right operand
 *   sum      of products
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_CUDA_ATTENTION_TILE_H
#define BERT_CUDA_ATTENTION_TILE_H

#include "cuda/attention.h"
#include "cuda/kernel.h"

/*
 * By hand, for any kind of value.  A lane has rows r and r + 8 of a sum, with
 * r = lane / 4, and in them columns c, c + 4, c + 8 and c + 12 with
 * c = lane % 4.  Lanes that read different numbers at a time then find them in
 * different banks, if ld is 4 more than a multiple of 32.
 */
template <typename V> struct plain_tiles {
    typedef V value;
    struct left { const V *at; unsigned ld; };
    struct right { const V *at; unsigned ld; };
    struct turned { const V *at; unsigned ld; };
    struct sum { real x[2][4]; };

    static __device__ real exponential(real x)
    {
        return exp(x);
    }

    template <typename O>
    static __device__ void load(O &o, const V *at, unsigned ld)
    {
        o.at = at;
        o.ld = ld;
    }

    static __device__ void zero(sum &s)
    {
        for (unsigned i = 0; i < 8; i++)
            s.x[i / 4][i % 4] = 0;
    }

    static __device__ V number(const right &b, unsigned k, unsigned column)
    {
        return b.at[k * b.ld + column];
    }

    static __device__ V number(const turned &b, unsigned k, unsigned column)
    {
        return b.at[column * b.ld + k];
    }

    template <typename B>
    static __device__ void multiply(sum &s, const left &a, const B &b)
    {
        const unsigned row = threadIdx.x % 32 / 4, column = threadIdx.x % 4;

#pragma unroll 4
        for (unsigned k = 0; k < TILE; k++) {
            const real low = to_real(a.at[row * a.ld + k]);
            const real high = to_real(a.at[(row + 8) * a.ld + k]);

#pragma unroll
            for (unsigned i = 0; i < 4; i++) {
                const real x = to_real(number(b, k, column + 4 * i));

                s.x[0][i] += low * x;
                s.x[1][i] += high * x;
            }
        }
    }

    /* Each number by the one in its place. */
    static __device__ void scale(sum &s, const sum &by)
    {
        for (unsigned i = 0; i < 8; i++)
            s.x[i / 4][i % 4] *= by.x[i / 4][i % 4];
    }

    static __device__ void load(sum &s, const real *at, unsigned ld)
    {
        const unsigned row = threadIdx.x % 32 / 4, column = threadIdx.x % 4;

        for (unsigned i = 0; i < 8; i++)
            s.x[i / 4][i % 4] = at[(row + i / 4 * 8) * ld + column + i % 4 * 4];
    }

    static __device__ void store(real *at, const sum &s, unsigned ld)
    {
        const unsigned row = threadIdx.x % 32 / 4, column = threadIdx.x % 4;

        for (unsigned i = 0; i < 8; i++)
            at[(row + i / 4 * 8) * ld + column + i % 4 * 4] = s.x[i / 4][i % 4];
    }
};

#endif /* BERT_CUDA_ATTENTION_TILE_H */
