/*
 * cuda_bf16.h - the type and its conversions; kernels do arithmetic in float.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef HOSTCUDA_BF16_H
#define HOSTCUDA_BF16_H

#include "device_functions.h"

struct __nv_bfloat16 {
    unsigned short bits;

    __nv_bfloat16() = default;
    __nv_bfloat16(float x) /* rounds to nearest, ties to even */
    {
        const unsigned u = __float_as_uint(x);

        bits = x != x ? (unsigned short)0x7fff
                      : (unsigned short)((u + 0x7fff + (u >> 16 & 1)) >> 16);
    }
    explicit operator float() const
    {
        return __uint_as_float((unsigned)bits << 16);
    }
};

struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

static inline __nv_bfloat16 __float2bfloat16(float x) { return x; }
static inline __nv_bfloat16 __float2bfloat16_rn(float x) { return x; }
static inline float __bfloat162float(__nv_bfloat16 x) { return (float)x; }

static inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x,
                                                __nv_bfloat16 y)
{
    return {x, y};
}
static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y)
{
    return {x, y};
}
static inline __nv_bfloat162 __float22bfloat162_rn(float2 v)
{
    return {v.x, v.y};
}
static inline float2 __bfloat1622float2(__nv_bfloat162 v)
{
    return {(float)v.x, (float)v.y};
}
static inline float __low2float(__nv_bfloat162 v) { return (float)v.x; }
static inline float __high2float(__nv_bfloat162 v) { return (float)v.y; }

static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x)
{
    return x.bits;
}
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits)
{
    __nv_bfloat16 x;

    x.bits = bits;
    return x;
}

#endif /* HOSTCUDA_BF16_H */
