/*
 * order.h - the shuffled order: a number for each sequence, by which they are
 * sorted.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKSHUF_ORDER_H
#define TOKSHUF_ORDER_H

#include <stdint.h>

/* The function that ends a step of SplitMix64; one to one. */
static inline uint64_t order_scramble(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/*
 * The number of the sequence `id` of the input.  Those of one seed are all
 * different, so the order does not depend on how it is found.
 */
static inline uint64_t order_key(uint64_t seed, uint64_t id)
{
    const uint64_t gamma = UINT64_C(0x9e3779b97f4a7c15);

    return order_scramble(order_scramble(id + gamma) ^
                          order_scramble(seed + 2 * gamma));
}

#endif
