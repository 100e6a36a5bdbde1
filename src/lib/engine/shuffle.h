/*
 * shuffle.h - packs that were decided and leave in random order.
 *
 * A pool: when it is full, one of its packs leaves, all with the same
 * probability.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_SHUFFLE_H
#define LIB_ENGINE_SHUFFLE_H

#include "base/mem_bound.h"
#include "packstream.h"

#define PS_SHUFFLE_MAX_PACKS 512

typedef struct ps_shuffle_pack {
    uint64_t time;   /* of the oldest sequence */
    uint32_t oldest; /* its slot */
    uint32_t first;  /* slot; the others follow by `next` */
    uint32_t n;
    uint64_t tokens;
} ps_shuffle_pack;

/* Members may be read; only the functions here change them. */
typedef struct ps_shuffle {
    uint64_t random; /* what the next choices depend on, besides the packs */
    uint32_t *next;  /* by slot */
    ps_shuffle_pack packs[PS_SHUFFLE_MAX_PACKS];
    uint32_t n_packs;
    uint32_t sequences;
    uint32_t max_sequences; /* it is full with as many, */
    uint32_t least;         /* or with so many that have `enough` tokens */
    uint64_t tokens;
    uint64_t enough;
    uint32_t oldest;        /* the pack with the least time, if any */
} ps_shuffle;

/*
 * The most sequences that may be in it, for a window of this size and depth:
 * one more pack may come while there are fewer than a window has.
 */
static inline uint32_t ps_shuffle_sequences(uint32_t window, uint32_t depth)
{
    return window + depth;
}

/*
 * Full with as many sequences as the window, unless `least` and `enough` are
 * set to less; for slots below `slots`.  NULL, and mem->failed is set, without
 * memory.
 */
ps_shuffle *ps_shuffle_open(uint64_t seed, uint32_t window, uint32_t slots,
                            ps_mem *mem);
void ps_shuffle_free(ps_shuffle *shuffle);

/* True if no more packs fit. */
bool ps_shuffle_is_full(const ps_shuffle *shuffle);

/* Adds a pack; `oldest` is one of its slots, with the least time of them. */
void ps_shuffle_put(ps_shuffle *shuffle, const uint32_t *slots, uint32_t n,
                    uint64_t tokens, uint32_t oldest, uint64_t time);

/* The slot with the least time of all; PS_NO_SLOT (window.h) without packs. */
uint32_t ps_shuffle_oldest(const ps_shuffle *shuffle);

/* Writes the slots of a pack, and says how many there are. */
uint32_t ps_shuffle_slots(const ps_shuffle *shuffle, uint32_t pack,
                          uint32_t *slots);

/* Takes one of the packs, there being one: at random, or the oldest. */
uint32_t ps_shuffle_take(ps_shuffle *shuffle, bool the_oldest,
                         uint32_t *slots);

#endif
