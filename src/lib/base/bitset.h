/*
 * bitset.h - a set of small integers with fast predecessor search.
 *
 * SPDX-License-Identifier: MIT
 *
 * Most calls access only one word of the lowest level.  This case is inline.
 */

#ifndef LIB_BASE_BITSET_H
#define LIB_BASE_BITSET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem_bound.h"

/*
 * The lowest level has one bit per number, in 64-bit words.  Each higher level
 * has one bit per word of the level below, which is set if the word is nonzero.
 * The highest level is a single word.  Five levels hold 64^5 numbers.
 */
#define PS_BITSET_LEVELS 5

typedef struct ps_bitset {
    uint64_t *level[PS_BITSET_LEVELS]; /* [0] is the lowest; points into
                                          words */
    uint64_t *words; /* storage of all levels, owned by the set */
    unsigned n_levels; /* 1 to PS_BITSET_LEVELS */
} ps_bitset;

/*
 * Initialises an empty set for numbers 0 to `max`, max < 64^5.  Sets
 * mem->failed if out of memory.
 */
void ps_bitset_init(ps_bitset *set, uint32_t max, ps_mem *mem);
void ps_bitset_destroy(ps_bitset *set);

/* Updates the higher levels after a word of the lowest level became nonzero. */
void ps_bitset_add_word(ps_bitset *set, uint32_t word);

/* Updates the higher levels after a word of the lowest level became zero. */
void ps_bitset_remove_word(ps_bitset *set, uint32_t word);

/*
 * Finds the greatest member in the words before `word`.  Returns false if there
 * is none.
 */
bool ps_bitset_before_word(const ps_bitset *set, uint32_t word,
                           uint32_t *number);

static inline unsigned ps_highest_bit(uint64_t word)
{
#if defined(__GNUC__)
    return 63u - (unsigned)__builtin_clzll(word);
#else
    unsigned bit = 0;

    while (word >>= 1)
        bit++;
    return bit;
#endif
}

static inline void ps_bitset_add(ps_bitset *set, uint32_t number)
{
    uint64_t *word = &set->level[0][number / 64];
    bool was_empty = *word == 0;

    *word |= UINT64_C(1) << number % 64;
    if (was_empty)
        ps_bitset_add_word(set, number / 64);
}

static inline void ps_bitset_remove(ps_bitset *set, uint32_t number)
{
    uint64_t *word = &set->level[0][number / 64];

    *word &= ~(UINT64_C(1) << number % 64);
    if (*word == 0)
        ps_bitset_remove_word(set, number / 64);
}

/* Finds the greatest member <= limit.  Returns false if there is none. */
static inline bool ps_bitset_at_most(const ps_bitset *set, uint32_t limit,
                                     uint32_t *number)
{
    uint64_t below = ~UINT64_C(0) >> (63 - limit % 64);
    uint64_t found = set->level[0][limit / 64] & below;

    if (found == 0)
        return ps_bitset_before_word(set, limit / 64, number);
    *number = limit / 64 * 64 + ps_highest_bit(found);
    return true;
}

#endif
