/*
 * deal.c - assign the packs of a global batch to ranks.
 *
 * SPDX-License-Identifier: MIT
 */

#include "deal/sets.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem_bound.h"

ps_result ps_deal_open(ps_deal **deal, uint32_t ranks, uint32_t per_rank,
                       ps_error *err)
{
    ps_mem mem = {0};
    ps_deal *d;

    *deal = NULL;
    if (ranks == 0 || per_rank == 0 || ranks > PS_MAX_DEAL / per_rank)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "%" PRIu32 " ranks of %" PRIu32 " packs: the product "
                       "must be between 1 and %" PRIu32,
                       ranks, per_rank, PS_MAX_DEAL);
    d = calloc(1, sizeof *d);
    if (d == NULL)
        return ps_fail_memory(err);
    d->ranks = ranks;
    d->per_rank = per_rank;
    d->n = ranks * per_rank;
    d->items = ps_mem_alloc(&mem, d->n, sizeof *d->items);
    d->spare = ps_mem_alloc(&mem, d->n, sizeof *d->spare);
    d->sets = ps_mem_alloc(&mem, d->n, sizeof *d->sets);
    d->spare_sets = ps_mem_alloc(&mem, ranks, sizeof *d->spare_sets);
    d->links = ps_mem_alloc(&mem, d->n, sizeof *d->links);
    d->spare_links = ps_mem_alloc(&mem, d->n, sizeof *d->spare_links);
    d->sums = ps_mem_alloc(&mem, ranks, sizeof *d->sums);
    d->blocks = ps_mem_alloc(&mem, per_rank, sizeof *d->blocks);
    d->order = ps_mem_alloc(&mem, ranks, sizeof *d->order);
    if (mem.failed) {
        ps_deal_free(d);
        return ps_fail_memory(err);
    }
    *deal = d;
    return PS_OK;
}

void ps_deal_free(ps_deal *d)
{
    if (d == NULL)
        return;
    free(d->items);
    free(d->spare);
    free(d->sets);
    free(d->spare_sets);
    free(d->links);
    free(d->spare_links);
    free(d->sums);
    free(d->blocks);
    free(d->order);
    free(d);
}

/* Maximum number of items per rank that the bound considers. */
#define BOUND_ROWS 16

/* Maximum number of means computed per considered item, on average. */
#define BOUND_WORK 4

/* The maximum sum is good enough if at most bound + bound / ENOUGH_PART. */
#define ENOUGH_PART 1024

/*
 * Total cost of the `n` costliest items, and of the `n` cheapest items.  The
 * prefix sums of the costs must be in `spare`.
 */
static uint64_t costliest(const ps_deal *d, uint32_t n)
{
    return n == 0 ? 0 : d->spare[n - 1].cost;
}

static uint64_t cheapest(const ps_deal *d, uint32_t n)
{
    return costliest(d, d->n) - costliest(d, d->n - n);
}

/*
 * Raises the bound to account for the equal counts.  Consider the `top`
 * costliest items.  If top > k * ranks, some ranks have more than k of them.
 * Let m be the number of these ranks.  The other ranks have at most k each, so
 * the m ranks together have at least top - k * (ranks - m).  The remaining
 * items of the m ranks cost at least as much as the cheapest items.  At least
 * one of the m ranks costs no less than their mean.  Since m is unknown, the
 * bound is the minimum of the means for all m.  As m decreases from top - k *
 * ranks, the mean first falls, then rises.  A larger m cannot have a lower
 * mean.
 */
static void raise_bound(ps_deal *d)
{
    const uint32_t rows = d->per_rank < BOUND_ROWS ? d->per_rank : BOUND_ROWS;
    uint64_t work = (uint64_t)BOUND_WORK * rows * d->ranks;

    d->spare[0].cost = d->items[0].cost;
    for (uint32_t i = 1; i < d->n; i++)
        d->spare[i].cost = d->spare[i - 1].cost + d->items[i].cost;
    for (uint32_t top = 1; top <= rows * d->ranks; top++) {
        const uint32_t k = (top - 1) / d->ranks;
        uint64_t least = UINT64_MAX;

        for (uint32_t m = top - k * d->ranks; m > 0; m--) {
            const uint32_t n = top - k * (d->ranks - m);
            const uint32_t all = m * d->per_rank;
            uint64_t sum;
            uint64_t mean;

            if (n > all || least <= d->bound)
                break;
            if (work-- == 0)
                return;
            sum = costliest(d, top) - costliest(d, top - n) +
                  cheapest(d, all - n);
            mean = sum / m + (sum % m != 0);
            if (mean > least)
                break;
            least = mean;
        }
        d->bound = ps_mem_max(d->bound, least);
    }
}

/* Copies and sorts the costs, and computes the bound.  PS_OK, PS_ERR_LIMIT. */
static ps_result take_costs(ps_deal *d, const uint64_t *costs, ps_error *err)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < d->n; i++) {
        if (costs[i] > INT64_MAX - total)
            return ps_fail(err, PS_ERR_LIMIT,
                           "the costs of a global batch exceed 63 bits");
        total += costs[i];
        d->items[i] = (ps_deal_item){costs[i], i};
    }
    ps_deal_sort(d->items, d->spare, d->n);

    d->bound = total / d->ranks + (total % d->ranks != 0);
    raise_bound(d);
    d->enough = d->bound + d->bound / ENOUGH_PART;
    return PS_OK;
}

/* Reorders the items set by set.  The items of each set are sorted. */
static void lay_out(ps_deal *d)
{
    ps_deal_item *from = d->items;
    uint32_t n = 0;

    d->items = d->spare;
    d->spare = from;
    for (uint32_t i = 0; i < d->ranks; i++) {
        uint32_t at = d->sets[i].item;

        for (uint32_t k = 0; k < d->per_rank; k++) {
            d->items[n++] = from[at];
            at = d->links[at];
        }
    }
    for (uint32_t i = 0; i < d->ranks; i++)
        ps_deal_sort(d->items + (size_t)i * d->per_rank, d->spare,
                     d->per_rank);
}

ps_result ps_deal_make(ps_deal *d, const uint64_t *costs, uint32_t *ranks,
                       ps_error *err)
{
    uint32_t next = 0;
    uint64_t max;
    ps_result r = take_costs(d, costs, err);

    if (r != PS_OK)
        return r;

    /* Use differencing, unless longest-first has a lower maximum. */
    max = ps_deal_difference(d);
    if (max > d->enough && ps_deal_longest_first(d) < max) {
        uint32_t *links = d->links;

        memcpy(d->sets, d->spare_sets, d->ranks * sizeof *d->sets);
        d->links = d->spare_links;
        d->spare_links = links;
    }
    lay_out(d);
    ps_deal_exchange(d);
    d->max = 0;
    for (uint32_t i = 0; i < d->ranks; i++)
        d->max = ps_mem_max(d->max, d->sets[i].sum);

    /*
     * Number the ranks in order of their first items.  This order is unrelated
     * to cost, so no rank always gets the costliest set.
     */
    for (uint32_t i = 0; i < d->n; i++)
        ranks[d->items[i].index] = i / d->per_rank;
    for (uint32_t i = 0; i < d->ranks; i++)
        d->order[i] = UINT32_MAX;
    for (uint32_t i = 0; i < d->n; i++) {
        uint32_t *rank = &d->order[ranks[i]];

        if (*rank == UINT32_MAX)
            *rank = next++;
        ranks[i] = *rank;
    }
    return PS_OK;
}

uint64_t ps_deal_max(const ps_deal *d)
{
    return d->max;
}

uint64_t ps_deal_bound(const ps_deal *d)
{
    return d->bound;
}
