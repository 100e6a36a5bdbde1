/*
 * ptx.h - PTX instructions that CUDA C++ does not provide.
 *
 * Operands consist of 8 x 8 tiles of bfloat16.  Lane l of a warp holds numbers
 * 2 (l % 4) and 2 (l % 4) + 1 of row l / 4 of each tile.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_PTX_H
#define TR_CUDA_PTX_H

#ifdef __CUDACC__

#include <cuda_bf16.h>
#include <stdint.h>

static __device__ inline uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/*
 * Loads four tiles from shared memory.  Lanes 8 i to 8 i + 7 pass the addresses
 * of the rows of tile i, aligned to 16 bytes.
 */
static __device__ inline void ldmatrix_x4(uint32_t (&tile)[4],
                                          const __nv_bfloat16 *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 "
                 "{%0, %1, %2, %3}, [%4];"
                 : "=r"(tile[0]), "=r"(tile[1]), "=r"(tile[2]), "=r"(tile[3])
                 : "r"(shared_address(row))
                 : "memory");
}

/* Like ldmatrix_x4(), but transposes each tile. */
static __device__ inline void ldmatrix_x4_trans(uint32_t (&tile)[4],
                                                const __nv_bfloat16 *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "
                 "{%0, %1, %2, %3}, [%4];"
                 : "=r"(tile[0]), "=r"(tile[1]), "=r"(tile[2]), "=r"(tile[3])
                 : "r"(shared_address(row))
                 : "memory");
}

/*
 * c += a b, in float.  a (16 x 16) consists of four tiles: upper left, lower
 * left, upper right, lower right.  b (16 x 8) consists of two transposed tiles,
 * upper and lower.  c (16 x 8) consists of two tiles, with two numbers per lane
 * and tile.
 */
static __device__ inline void mma_m16n8k16(float (&c)[4],
                                           const uint32_t (&a)[4], uint32_t b0,
                                           uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Returns 2^x, accurate to 2 ulp; results below 2^-126 become 0. */
static __device__ inline float ex2_approx(float x)
{
    float y;

    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

#else
#include "hostcuda_ptx.h"
#endif

#endif /* TR_CUDA_PTX_H */
