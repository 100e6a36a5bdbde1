/*
 * order.h - the shuffled order, defined by a sort key for each sequence.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKSHUF_ORDER_H
#define TOKSHUF_ORDER_H

#include <stdint.h>

#include "common/splitmix.h"

/*
 * Sort key of sequence `id` of the input.  Keys for the same seed are distinct,
 * so the order does not depend on the sorting algorithm.
 */
static inline uint64_t order_key(uint64_t seed, uint64_t id)
{
    return splitmix_finish(splitmix_finish(id + SPLITMIX_GAMMA) ^
                           splitmix_finish(seed + 2 * SPLITMIX_GAMMA));
}

#endif
