/*
 * mix.h - numbers that look random, each a function of a seed and a place.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_MIX_H
#define BERT_MIX_H

#include <stdint.h>

#include "both.h"
#include "common/splitmix.h"

BERT_BOTH
static inline uint64_t bert_mix(uint64_t seed, uint64_t place)
{
    return splitmix_finish(seed + (place + 1) * SPLITMIX_GAMMA);
}

#endif /* BERT_MIX_H */
