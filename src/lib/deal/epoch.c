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

/* The permutation of one epoch. */
typedef struct network {
    unsigned half; /* bits of each half */
    uint64_t keys[ROUNDS];
} network;

static network network_of(uint64_t n, uint64_t seed, uint64_t epoch)
{
    uint64_t round_keys = ps_random(&seed) ^ epoch; /* their generator */
    network net = {.half = HALF_MIN};

    while (net.half < HALF_MAX && n > UINT64_C(1) << 2 * net.half)
        net.half++;
    for (int i = 0; i < ROUNDS; i++)
        net.keys[i] = ps_random(&round_keys);
    return net;
}

/* Returns the hash of one half, which a round mixes into the other half. */
static uint64_t hash_half(const network *net, int i, uint64_t half)
{
    uint64_t state = net->keys[i] ^ half;

    return ps_random(&state) >> (64 - net->half);
}

uint64_t ps_shuffled(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t place)
{
    const network net = network_of(n, seed, epoch);

    if (place >= n)
        return place;
    do {
        uint64_t left = place >> net.half;
        uint64_t right = place & ((UINT64_C(1) << net.half) - 1);

        for (int i = 0; i < ROUNDS; i++) {
            const uint64_t sum = left ^ hash_half(&net, i, right);

            left = right;
            right = sum;
        }
        place = left << net.half | right;
    } while (place >= n);
    return place;
}

uint64_t ps_shuffled_place(uint64_t n, uint64_t seed, uint64_t epoch,
                           uint64_t number)
{
    const network net = network_of(n, seed, epoch);

    if (number >= n)
        return number;
    do {
        uint64_t left = number >> net.half;
        uint64_t right = number & ((UINT64_C(1) << net.half) - 1);

        for (int i = ROUNDS; i-- > 0;) {
            const uint64_t sum = right ^ hash_half(&net, i, left);

            right = left;
            left = sum;
        }
        number = left << net.half | right;
    } while (number >= n);
    return number;
}
