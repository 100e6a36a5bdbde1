/*
 * bitset.h - a set of small numbers that finds its greatest member below a
 * limit in a few steps.
 *
 * Most calls touch one word of the lowest level only; these are inline.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_BASE_BITSET_H
#define LIB_BASE_BITSET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem_bound.h"

/*
 * The lowest level has a bit for each number, in words of 64; the next one a
 * bit for each of these words that is not zero, and so on up to a single word.
 * Five levels hold 64^5 numbers.
 */
#define PS_BITSET_LEVELS 5

typedef struct ps_bitset {
    uint64_t *level[PS_BITSET_LEVELS];
    uint64_t *words; /* all levels, one allocation */
    unsigned n_levels;
} ps_bitset;

/* For numbers 0..max, below 64^5.  Sets mem->failed without memory. */
void ps_bitset_init(ps_bitset *set, uint32_t max, ps_mem *mem);
void ps_bitset_destroy(ps_bitset *set);

/* Tells the upper levels that a word of the lowest one is no longer empty. */
void ps_bitset_add_word(ps_bitset *set, uint32_t word);

/* Tells them that it is empty again. */
void ps_bitset_remove_word(ps_bitset *set, uint32_t word);

/* The greatest member in the words before one; false if there is none. */
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

/* The greatest member <= limit into *number; false if there is none. */
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
