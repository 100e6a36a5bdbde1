/*
 * longest.c - longest processing time first: items from the costliest on, each
 * to the set with the least sum of those that are not full yet.
 *
 * SPDX-License-Identifier: MIT
 */

#include "deal/deal.h"

/* Whether set `a` comes before `b`: a lesser sum, or the lower number. */
static bool is_before(const ps_deal_set *sets, uint32_t a, uint32_t b)
{
    return sets[a].sum != sets[b].sum ? sets[a].sum < sets[b].sum : a < b;
}

/* Puts `set` at the top of a heap of `n`, and lets it sink to its place. */
static void sift_down(ps_deal *d, uint32_t set, uint32_t n)
{
    uint32_t *heap = d->order;
    uint32_t at = 0;

    for (;;) {
        uint32_t child = 2 * at + 1;

        if (child >= n)
            break;
        if (child + 1 < n &&
            is_before(d->spare_sets, heap[child + 1], heap[child]))
            child++;
        if (!is_before(d->spare_sets, heap[child], set))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = set;
}

uint64_t ps_deal_longest_first(ps_deal *d)
{
    uint32_t n = d->ranks; /* in the heap: sets that are not full */
    uint64_t max = 0;

    for (uint32_t i = 0; i < d->ranks; i++) {
        d->spare_sets[i] = (ps_deal_set){0};
        d->order[i] = i;
    }
    for (uint32_t i = 0; i < d->n; i++) {
        ps_deal_set *set = &d->spare_sets[d->order[0]];

        d->spare_links[i] = i;
        if (set->n > 0)
            ps_deal_link(d->spare_links, set->item, i);
        set->item = i;
        set->sum += d->items[i].cost;
        if (set->sum > max)
            max = set->sum;
        if (++set->n == d->per_rank)
            n--;
        if (n > 0)
            sift_down(d, d->order[set->n == d->per_rank ? n : 0], n);
    }
    return max;
}
