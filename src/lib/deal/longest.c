/*
 * longest.c - longest processing time first: assign items in descending order
 * of cost, each to the set with the least sum among the sets that are not full.
 *
 * SPDX-License-Identifier: MIT
 */

#include "deal/sets.h"

/* True if set `a` precedes `b`: lower sum, then lower number. */
static bool is_before(const ps_deal_set *sets, uint32_t a, uint32_t b)
{
    return sets[a].sum != sets[b].sum ? sets[a].sum < sets[b].sum : a < b;
}

uint64_t ps_deal_longest_first(ps_deal *d)
{
    ps_deal_set *sets = d->spare_sets;
    uint32_t *heap = d->order; /* heap of the sets that are not full */
    uint32_t n = d->ranks;
    uint64_t max = 0;

    for (uint32_t i = 0; i < d->ranks; i++) {
        sets[i] = (ps_deal_set){0};
        heap[i] = i;
    }
    for (uint32_t i = 0; i < d->n; i++) {
        ps_deal_set *set = &sets[heap[0]];
        uint32_t sinking = heap[0];
        uint32_t at = 0;

        d->spare_links[i] = i;
        if (set->n > 0)
            ps_deal_link(d->spare_links, set->item, i);
        set->item = i;
        set->sum += d->items[i].cost;
        if (set->sum > max)
            max = set->sum;

        /*
         * Sift the set down.  A full set is replaced by the last set of the
         * heap.
         */
        if (++set->n == d->per_rank)
            sinking = heap[--n];
        for (uint32_t child = 1; child < n; child = 2 * at + 1) {
            if (child + 1 < n && is_before(sets, heap[child + 1], heap[child]))
                child++;
            if (!is_before(sets, heap[child], sinking))
                break;
            heap[at] = heap[child];
            at = child;
        }
        heap[at] = sinking;
    }
    return max;
}
