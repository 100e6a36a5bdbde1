/*
 * rng.h - pseudo-random numbers, identical on every machine.  Any seed is
 * valid.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_DATA_RNG_H
#define TR_DATA_RNG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/splitmix.h"

static inline uint64_t draw(uint64_t *state)
{
    return splitmix_finish(*state += SPLITMIX_GAMMA);
}

/* Returns a number below n, with n > 0.  The bias is below n / 2^32. */
static inline uint32_t tr_rng_below(uint64_t *state, uint32_t n)
{
    return (uint32_t)((draw(state) >> 32) * n >> 32);
}

/* Returns true with probability `share`, which is 0 to 1. */
static inline bool tr_rng_chance(uint64_t *state, double share)
{
    return (double)(draw(state) >> 11) * 0x1p-53 < share;
}

/* Derives a separate seed for each number. */
static inline uint64_t tr_rng_mix(uint64_t seed, uint64_t number)
{
    uint64_t state = seed ^ (number + 1) * UINT64_C(0xd6e8feb86659fd93);

    return draw(&state);
}

#endif /* TR_DATA_RNG_H */
