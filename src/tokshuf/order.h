/*
 * order.h - the shuffled order: a number for each sequence, by which they are
 * sorted.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKSHUF_ORDER_H
#define TOKSHUF_ORDER_H

#include <stdint.h>

#include "common/splitmix.h"

/*
 * The number of the sequence `id` of the input.  Those of one seed are all
 * different, so the order does not depend on how it is found.
 */
static inline uint64_t order_key(uint64_t seed, uint64_t id)
{
    return splitmix_finish(splitmix_finish(id + SPLITMIX_GAMMA) ^
                           splitmix_finish(seed + 2 * SPLITMIX_GAMMA));
}

#endif
