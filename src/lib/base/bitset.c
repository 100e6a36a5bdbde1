/*
 * bitset.c - a set of small integers with fast predecessor search.
 *
 * SPDX-License-Identifier: MIT
 */

#include "base/bitset.h"

#include <stddef.h>
#include <stdlib.h>

void ps_bitset_init(ps_bitset *set, uint32_t max, ps_mem *mem)
{
    size_t words[PS_BITSET_LEVELS];
    size_t total = 0;
    size_t n = (size_t)max + 1;

    *set = (ps_bitset){0};
    do {
        n = (n + 63) / 64;
        words[set->n_levels++] = n;
        total += n;
    } while (n > 1 && set->n_levels < PS_BITSET_LEVELS);
    set->words = ps_mem_alloc(mem, total, sizeof *set->words);
    if (set->words == NULL)
        return;
    total = 0;
    for (unsigned l = 0; l < set->n_levels; l++) {
        set->level[l] = set->words + total;
        total += words[l];
    }
}

void ps_bitset_destroy(ps_bitset *set)
{
    free(set->words);
    *set = (ps_bitset){0};
}

void ps_bitset_add_word(ps_bitset *set, uint32_t number)
{
    for (unsigned l = 1; l < set->n_levels; l++) {
        uint64_t *word = &set->level[l][number / 64];
        bool was_empty = *word == 0;

        *word |= UINT64_C(1) << number % 64;
        if (!was_empty)
            return;
        number /= 64;
    }
}

void ps_bitset_remove_word(ps_bitset *set, uint32_t number)
{
    for (unsigned l = 1; l < set->n_levels; l++) {
        uint64_t *word = &set->level[l][number / 64];

        *word &= ~(UINT64_C(1) << number % 64);
        if (*word != 0)
            return;
        number /= 64;
    }
}

/*
 * Ascends to a level that has a nonzero word before `at`, then descends to the
 * greatest member.
 */
bool ps_bitset_before_word(const ps_bitset *set, uint32_t at,
                           uint32_t *number)
{
    unsigned l = 1;
    uint64_t found = 0;

    for (; l < set->n_levels; l++) {
        found = set->level[l][at / 64] & ((UINT64_C(1) << at % 64) - 1);
        if (found != 0)
            break;
        at /= 64;
    }
    if (found == 0)
        return false;
    at = at / 64 * 64 + ps_highest_bit(found);
    while (l-- > 0)
        at = at * 64 + ps_highest_bit(set->level[l][at]);
    *number = at;
    return true;
}
