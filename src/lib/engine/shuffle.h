/*
 * shuffle.h - hold chosen packs and emit them in random order.
 *
 * Chosen packs are held in a pool.  When it is full, one of its packs is
 * emitted, each with the same probability.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_SHUFFLE_H
#define LIB_ENGINE_SHUFFLE_H

#include "base/mem_bound.h"
#include "packstream.h"

#define PS_SHUFFLE_MAX_PACKS 512

typedef struct ps_shuffle_pack {
    uint64_t time;   /* arrival of the oldest sequence, records */
    uint32_t oldest; /* slot of that sequence */
    uint32_t first;  /* first slot; `next` links the others */
    uint32_t n;
    uint64_t tokens;
} ps_shuffle_pack;

/* Other files may read the members; only the functions here change them. */
typedef struct ps_shuffle {
    uint64_t random; /* state of the generator */
    uint32_t *next;  /* next slot of the same pack, by slot */
    ps_shuffle_pack packs[PS_SHUFFLE_MAX_PACKS];
    uint32_t n_packs;
    uint32_t sequences;
    uint32_t max_sequences; /* the pool is full with this many, */
    uint32_t least;         /* or with this many and `enough` tokens */
    uint64_t tokens;
    uint64_t enough;
    uint32_t oldest;        /* index of the pack with the least time, if any */
} ps_shuffle;

/*
 * Maximum number of sequences in a pool: a window's, plus a pack added just
 * before that number was reached.
 */
static inline uint32_t ps_shuffle_sequences(uint32_t window, uint32_t depth)
{
    return window + depth;
}

/*
 * Creates a pool for slots below `slots`.  It is full with as many sequences as
 * the window, unless the caller sets `least` and `enough`.  Returns NULL and
 * sets mem->failed if memory runs out.
 */
ps_shuffle *ps_shuffle_open(uint64_t seed, uint32_t window, uint32_t slots,
                            ps_mem *mem);
void ps_shuffle_free(ps_shuffle *shuffle);

/* True if no more packs can be added. */
bool ps_shuffle_is_full(const ps_shuffle *shuffle);

/* Adds a pack; `oldest` is its slot with the least time. */
void ps_shuffle_put(ps_shuffle *shuffle, const uint32_t *slots, uint32_t n,
                    uint64_t tokens, uint32_t oldest, uint64_t time);

/* The slot with the least time in all packs; PS_NO_SLOT if there are none. */
uint32_t ps_shuffle_oldest(const ps_shuffle *shuffle);

/* Writes the slots of a pack and returns their number. */
uint32_t ps_shuffle_slots(const ps_shuffle *shuffle, uint32_t pack,
                          uint32_t *slots);

/*
 * Removes a pack, at random or the oldest, and returns the number of its slots.
 * The pool must not be empty.
 */
uint32_t ps_shuffle_take(ps_shuffle *shuffle, bool the_oldest,
                         uint32_t *slots);

#endif
