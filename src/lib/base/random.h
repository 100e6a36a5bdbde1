/*
 * random.h - pseudo-random numbers, the same on every machine.
 *
 * SPDX-License-Identifier: MIT
 *
 * SplitMix64 (Steele, Lea and Flood 2014).  Any seed is valid.
 */

#ifndef LIB_BASE_RANDOM_H
#define LIB_BASE_RANDOM_H

#include <stdint.h>

static inline uint64_t ps_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/*
 * Returns a number less than `n`, where 1 <= n <= 2^32.  The relative bias is
 * less than n / 2^32.
 */
static inline uint64_t ps_random_below(uint64_t *state, uint64_t n)
{
    return (ps_random(state) >> 32) * n >> 32;
}

#endif
