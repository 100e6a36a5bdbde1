/*
 * mix.h - numbers that look random, each a function of a seed and a place.
 *
 * The finish of SplitMix64 (Steele, Lea and Flood 2014) over seed and place.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_MIX_H
#define BERT_MIX_H

#include <stdint.h>

#include "both.h"

BERT_BOTH
static inline uint64_t bert_mix(uint64_t seed, uint64_t place)
{
    uint64_t z = seed + (place + 1) * UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

#endif /* BERT_MIX_H */
