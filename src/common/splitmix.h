/*
 * splitmix.h - SplitMix64 (Steele, Lea and Flood 2014): a pseudorandom
 * generator with the same output on every machine; shared by the library, the
 * programs and the trainer.
 *
 * To draw a number, add SPLITMIX_GAMMA to the state and apply splitmix_finish
 * to the result.  Any seed is valid.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef COMMON_SPLITMIX_H
#define COMMON_SPLITMIX_H

#include <stdint.h>

#define SPLITMIX_GAMMA UINT64_C(0x9e3779b97f4a7c15)

#ifdef __CUDACC__
__host__ __device__ /* also called from kernels */
#endif
/* A bijection: distinct inputs have distinct outputs. */
static inline uint64_t splitmix_finish(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

#endif
