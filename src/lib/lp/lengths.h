/*
 * lengths.h - look up lengths in ascending order.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_LP_LENGTHS_H
#define LIB_LP_LENGTHS_H

#include <stdint.h>

/*
 * Returns the number of lengths that are at most `max`.  The result is known to
 * be between `low` and `high`.
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
 * Returns the greatest remaining length <= `k`, numbered from 1; 0 if none.
 * down[i] is i for a remaining length, otherwise a smaller number to continue
 * from.  Paths are halved during the search, as in a union-find structure.
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
