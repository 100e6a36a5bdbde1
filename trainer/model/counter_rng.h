/*
 * counter_rng.h - random numbers, each a function of a seed and a counter.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_MIX_H
#define BERT_MIX_H

#include <stdint.h>

#include "common/splitmix.h"
#include "model/host_device.h"

BERT_BOTH
static inline uint64_t bert_mix(uint64_t seed, uint64_t place)
{
    return splitmix_finish(seed + (place + 1) * SPLITMIX_GAMMA);
}

#endif /* BERT_MIX_H */
