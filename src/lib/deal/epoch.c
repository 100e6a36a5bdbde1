/*
 * epoch.c - the order of packs in an epoch, a number at a time.
 *
 * A Feistel network permutes the numbers of 2 * half bits: each round swaps
 * their halves and mixes a hash of the one into the other.  Where a number is
 * not below n, it is permuted again until it is, which keeps the order a
 * permutation of the numbers below n (cycle walking; Black and Rogaway 2002).
 * So the order takes no memory, as in the shuffles for GPUs of Mitchell et al.
 * (2022).  Halves of less than 3 bits have too few functions: some orders would
 * come more often than others.
 *
 * SPDX-License-Identifier: MIT
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
        uint64_t round_keys = key; /* the state that makes them */
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
