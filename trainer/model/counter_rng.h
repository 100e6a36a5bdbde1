/*
 * counter_rng.h - random numbers as a function of a seed and a counter.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_MODEL_COUNTER_RNG_H
#define TR_MODEL_COUNTER_RNG_H

#include <stdint.h>

#include "common/splitmix.h"
#include "model/host_device.h"

TR_HOST_DEVICE
static inline uint64_t tr_counter_rng(uint64_t seed, uint64_t place)
{
    return splitmix_finish(seed + (place + 1) * SPLITMIX_GAMMA);
}

#endif /* TR_MODEL_COUNTER_RNG_H */
