/*
 * vector.h - helpers for vectorised loops over rows.
 *
 * Loops over rows are small functions that the compiler vectorises.  They are
 * compiled for several instruction sets; the best one is selected at start.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CPU_VECTOR_H
#define TR_CPU_VECTOR_H

#include <stdint.h>
#include <string.h>
#include <tgmath.h>

#include "model/scalar.h"

/* clang before 17 does not accept the attribute together with `static`. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) \
    && !defined(__clang__)
#define TR_VECTORS __attribute__((target_clones("avx512f", "avx2", \
                                                "default")))
#else
#define TR_VECTORS
#endif

/* A loop that TR_VECTORS functions contain several times, with constants. */
#define TR_INLINE static inline __attribute__((always_inline))

#ifdef TR_DOUBLE

static inline real tr_exp(real x)
{
    return exp(x);
}

#else

/*
 * Returns e^x with an error of a few units in the last place.  The function is
 * inline so that loops vectorise, and many times faster than libm's exp.  The
 * result is 0 if x is less than -87, the end of float's range; an x greater
 * than 88 is treated as 88.  NaN stays NaN.
 *
 * With x = n ln 2 + r and |r| <= ln 2 / 2, 2^n is assembled from bits, and e^r
 * is a Taylor polynomial.  Adding 1.5 * 2^23 rounds to an integer and leaves it
 * in the lowest bits.
 */
static inline real tr_exp(real x)
{
    const real shift = 12582912.0f;
    const real low = x < -87.0f ? -87.0f : x;
    const real in = low > 88.0f ? 88.0f : low;
    const real shifted = in * 1.44269504f + shift;
    const real n = shifted - shift;
    const real r = in - n * 0.693145752f - n * 1.42860677e-6f;
    real p = 1.0f / 720.0f;
    real power;
    uint32_t bits;

    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 23) + UINT32_C(0x3f800000);
    memcpy(&power, &bits, sizeof power);
    return x < -87.0f ? 0.0f : p * power;
}

#endif

#endif /* TR_CPU_VECTOR_H */
