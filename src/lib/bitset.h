/*
 * bitset.h - a set of small numbers that finds its greatest member below a
 * limit in a few steps.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_BITSET_H
#define LIB_BITSET_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Bits in words of 64; above them a bit for each word that is not zero, and
 * so on up to a single word.  Five levels hold 64^5 numbers.
 */
#define PS_BITSET_LEVELS 5

typedef struct ps_bitset {
    uint64_t *level[PS_BITSET_LEVELS];
    uint64_t *words; /* all levels, one allocation */
    unsigned n_levels;
} ps_bitset;

/* For numbers 0..most, below 64^5.  False if there is no memory. */
bool ps_bitset_init(ps_bitset *set, uint32_t most);
void ps_bitset_destroy(ps_bitset *set);

void ps_bitset_add(ps_bitset *set, uint32_t number);
void ps_bitset_remove(ps_bitset *set, uint32_t number);

/* The greatest member <= limit into *number; false if there is none. */
bool ps_bitset_at_most(const ps_bitset *set, uint32_t limit,
                       uint32_t *number);

#endif
