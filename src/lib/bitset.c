/*
 * bitset.c - a set of small numbers that finds its greatest member below a
 * limit in a few steps.
 *
 * SPDX-License-Identifier: MIT
 */

#include "bitset.h"

#include <stddef.h>
#include <stdlib.h>

static unsigned highest_bit(uint64_t word)
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

bool ps_bitset_init(ps_bitset *set, uint32_t most)
{
    size_t words[PS_BITSET_LEVELS];
    size_t total = 0;
    size_t n = (size_t)most + 1;

    *set = (ps_bitset){0};
    do {
        n = (n + 63) / 64;
        words[set->n_levels++] = n;
        total += n;
    } while (n > 1 && set->n_levels < PS_BITSET_LEVELS);
    set->words = calloc(total, sizeof *set->words);
    if (set->words == NULL)
        return false;
    total = 0;
    for (unsigned l = 0; l < set->n_levels; l++) {
        set->level[l] = set->words + total;
        total += words[l];
    }
    return true;
}

void ps_bitset_destroy(ps_bitset *set)
{
    free(set->words);
    *set = (ps_bitset){0};
}

void ps_bitset_add(ps_bitset *set, uint32_t number)
{
    for (unsigned l = 0; l < set->n_levels; l++) {
        uint64_t *word = &set->level[l][number / 64];
        bool was_empty = *word == 0;

        *word |= UINT64_C(1) << number % 64;
        if (!was_empty)
            return;
        number /= 64;
    }
}

void ps_bitset_remove(ps_bitset *set, uint32_t number)
{
    for (unsigned l = 0; l < set->n_levels; l++) {
        uint64_t *word = &set->level[l][number / 64];

        *word &= ~(UINT64_C(1) << number % 64);
        if (*word != 0)
            return;
        number /= 64;
    }
}

/*
 * Climbs until a word holds a member at or below the limit, then descends
 * to the greatest one in it.
 */
bool ps_bitset_at_most(const ps_bitset *set, uint32_t limit,
                       uint32_t *number)
{
    uint64_t below = ~UINT64_C(0) >> (63 - limit % 64);
    uint32_t at = limit;
    unsigned l = 0;
    uint64_t found;

    while ((found = set->level[l][at / 64] & below) == 0) {
        at /= 64;
        if (++l == set->n_levels)
            return false;
        below = (UINT64_C(1) << at % 64) - 1;
    }
    at = at / 64 * 64 + highest_bit(found);
    while (l-- > 0)
        at = at * 64 + highest_bit(set->level[l][at]);
    *number = at;
    return true;
}
