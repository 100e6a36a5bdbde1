/*
 * difference.c - differencing: repeatedly merge the two blocks with the largest
 * internal differences, so that their sums balance each other.
 *
 * SPDX-License-Identifier: MIT
 */

#include <string.h>

#include "deal/sets.h"

static ps_deal_set *block_at(const ps_deal *d, uint32_t block)
{
    return d->sets + (size_t)block * d->ranks;
}

/*
 * True if block `a` has a larger difference than block `b`.  The sets of each
 * block must be sorted.
 */
static bool is_less_even(const ps_deal *d, uint32_t a, uint32_t b)
{
    const ps_deal_set *x = block_at(d, a);
    const ps_deal_set *y = block_at(d, b);
    uint64_t dx = x[0].sum - x[d->ranks - 1].sum;
    uint64_t dy = y[0].sum - y[d->ranks - 1].sum;

    return dx != dy ? dx > dy : a < b;
}

/* Sifts the block at index `at` of the heap of `n` blocks down. */
static void sift_down(ps_deal *d, uint32_t at, uint32_t n)
{
    uint32_t block = d->blocks[at];

    for (;;) {
        uint32_t child = 2 * at + 1;

        if (child >= n)
            break;
        if (child + 1 < n &&
            is_less_even(d, d->blocks[child + 1], d->blocks[child]))
            child++;
        if (!is_less_even(d, d->blocks[child], block))
            break;
        d->blocks[at] = d->blocks[child];
        at = child;
    }
    d->blocks[at] = block;
}

/*
 * Merges block `b` into `a`: joins the least set of b with the greatest set of
 * a, and so on.  Then sorts the sets by sum.
 */
static void join(ps_deal *d, uint32_t a, uint32_t b)
{
    ps_deal_set *x = block_at(d, a);
    const ps_deal_set *y = block_at(d, b) + d->ranks;

    for (uint32_t i = 0; i < d->ranks; i++) {
        y--;
        x[i].sum += y->sum;
        x[i].n += y->n;
        ps_deal_link(d->links, x[i].item, y->item);
        d->sums[i] = (ps_deal_item){x[i].sum, i};
    }
    ps_deal_sort(d->sums, d->spare, d->ranks);
    memcpy(d->spare_sets, x, d->ranks * sizeof *x);
    for (uint32_t i = 0; i < d->ranks; i++)
        x[i] = d->spare_sets[d->sums[i].index];
}

uint64_t ps_deal_difference(ps_deal *d)
{
    for (uint32_t i = 0; i < d->n; i++) {
        d->sets[i] = (ps_deal_set){d->items[i].cost, i, 1};
        d->links[i] = i;
    }
    for (uint32_t i = 0; i < d->per_rank; i++)
        d->blocks[i] = i;
    for (uint32_t i = d->per_rank / 2; i-- > 0;)
        sift_down(d, i, d->per_rank);
    for (uint32_t n = d->per_rank; n > 1; n--) {
        uint32_t a = d->blocks[0];

        d->blocks[0] = d->blocks[n - 1];
        sift_down(d, 0, n - 1);
        join(d, a, d->blocks[0]);
        d->blocks[0] = a;
        sift_down(d, 0, n - 1);
    }
    if (d->blocks[0] != 0)
        memcpy(d->sets, block_at(d, d->blocks[0]),
               d->ranks * sizeof *d->sets);
    return d->sets[0].sum;
}
