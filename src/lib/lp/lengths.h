/*
 * lengths.h - looking up lengths in ascending order.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_LP_LENGTHS_H
#define LIB_LP_LENGTHS_H

#include <stdint.h>

/*
 * How many of the ascending lengths are at most `max`; the answer is known
 * to be from `low` to `high`.
 */
static inline uint32_t ps_lengths_up_to(const uint32_t *length, uint32_t low,
                                        uint32_t high, uint32_t max)
{
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (length[middle] <= max)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/*
 * The greatest length at or below `k` that is not used up, where lengths are
 * numbered from 1 and 0 stands for none.  down[i] is i for a length that is
 * left, else a smaller one to go on from; the paths are halved on the way, so
 * that the next search is short.
 */
static inline uint32_t ps_left_up_to(uint32_t *down, uint32_t k)
{
    while (down[k] != k) {
        down[k] = down[down[k]];
        k = down[k];
    }
    return k;
}

#endif
