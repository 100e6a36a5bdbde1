/*
 * splitmix.h - SplitMix64 (Steele, Lea and Flood 2014): numbers that look
 * random, the same ones on every machine; the library, the programs and the
 * trainer share it.
 *
 * A generator adds SPLITMIX_GAMMA to its state, of any seed, and gives
 * splitmix_finish of that.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef COMMON_SPLITMIX_H
#define COMMON_SPLITMIX_H

#include <stdint.h>

#define SPLITMIX_GAMMA UINT64_C(0x9e3779b97f4a7c15)

#ifdef __CUDACC__
__host__ __device__ /* kernels call it, too */
#endif
/* One to one: different numbers stay different. */
static inline uint64_t splitmix_finish(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

#endif
