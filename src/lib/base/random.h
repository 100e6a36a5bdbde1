/*
 * random.h - numbers that look random, the same ones on every machine; any
 * seed will do.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_BASE_RANDOM_H
#define LIB_BASE_RANDOM_H

#include <stdint.h>

#include "splitmix.h"

static inline uint64_t ps_random(uint64_t *state)
{
    return splitmix_finish(*state += SPLITMIX_GAMMA);
}

/* Below `n`, from 1 to 2^32; some come more often by less than n / 2^32. */
static inline uint64_t ps_random_below(uint64_t *state, uint64_t n)
{
    return (ps_random(state) >> 32) * n >> 32;
}

#endif
