/*
 * epoch.c - order of packs in an epoch, computed one number at a time.
 *
 * SPDX-License-Identifier: MIT
 *
 * A Feistel network permutes the numbers of 2 * half bits: each round swaps the
 * halves and mixes a hash of one half into the other.  A result that is not
 * less than n is permuted again until it is, which yields a permutation of the
 * numbers less than n (cycle walking; Black and Rogaway 2002).  Like the GPU
 * shuffles of Mitchell et al. (2022), this needs no memory.  Halves have at
 * least 3 bits: with fewer there are too few round functions, and some orders
 * would be more frequent than others.
 */

#include "base/random.h"
#include "deal/deal.h"

#define ROUNDS 12
#define HALF_MIN 3
#define HALF_MAX 32

uint64_t ps_shuffled(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t place)
{
    const uint64_t key = ps_random(&seed) ^ epoch;
    unsigned half = HALF_MIN;

    if (place >= n)
        return place;
    while (half < HALF_MAX && n > UINT64_C(1) << 2 * half)
        half++;
    do {
        uint64_t round_keys = key; /* generator of the round keys */
        uint64_t left = place >> half;
        uint64_t right = place & ((UINT64_C(1) << half) - 1);

        for (int i = 0; i < ROUNDS; i++) {
            uint64_t state = ps_random(&round_keys) ^ right;
            const uint64_t sum = left ^ ps_random(&state) >> (64 - half);

            left = right;
            right = sum;
        }
        place = left << half | right;
    } while (place >= n);
    return place;
}
