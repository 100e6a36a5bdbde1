/*
 * hostcuda_ptx.h - replaces the inline assembly in trainer/cuda/ptx.h.
 *
 * All 32 lanes must take part in each call except ex2_approx(); as on a GPU
 * that does not order their memory accesses.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef HOSTCUDA_PTX_H
#define HOSTCUDA_PTX_H

#include "cuda_bf16.h"

namespace hostcuda {

/* The values of all 32 lanes, until the warp meets again. */
const uint64_t *gather(uint64_t value, const char *file, int line);
void multiply(float (&c)[4], const uint32_t (&ab)[6], const char *file,
              int line);

/* Addresses of the rows of all four tiles. */
inline const uint64_t *rows_of(const __nv_bfloat16 *row, const char *file,
                               int line)
{
    if ((uintptr_t)row % 16)
        fault(file, line, "a row of a tile that does not lie at 16 bytes");
    return gather((uint64_t)(uintptr_t)row, file, line);
}

inline uint32_t number(uint64_t row, unsigned column)
{
    return ((const __nv_bfloat16 *)(uintptr_t)row)[column].bits;
}

} // namespace hostcuda

static inline void ldmatrix_x4(uint32_t (&tile)[4], const __nv_bfloat16 *row,
                               HOSTCUDA_AT)
{
    const uint64_t *const rows = hostcuda::rows_of(row, file, line);
    const unsigned at = hostcuda::lane() / 4, pair = hostcuda::lane() % 4 * 2;

    for (unsigned i = 0; i < 4; i++)
        tile[i] = hostcuda::number(rows[8 * i + at], pair)
                  | hostcuda::number(rows[8 * i + at], pair + 1) << 16;
}

static inline void ldmatrix_x4_trans(uint32_t (&tile)[4],
                                     const __nv_bfloat16 *row, HOSTCUDA_AT)
{
    const uint64_t *const rows = hostcuda::rows_of(row, file, line);
    const unsigned at = hostcuda::lane() / 4, pair = hostcuda::lane() % 4 * 2;

    for (unsigned i = 0; i < 4; i++)
        tile[i] = hostcuda::number(rows[8 * i + pair], at)
                  | hostcuda::number(rows[8 * i + pair + 1], at) << 16;
}

static inline void mma_m16n8k16(float (&c)[4], const uint32_t (&a)[4],
                                uint32_t b0, uint32_t b1, HOSTCUDA_AT)
{
    hostcuda::multiply(c, {a[0], a[1], a[2], a[3], b0, b1}, file, line);
}

static inline float ex2_approx(float x)
{
    return x < -126.0f ? 0.0f : std::exp2(x);
}

#endif /* HOSTCUDA_PTX_H */
