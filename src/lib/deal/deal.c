/*
 * deal.c - the deal of a global batch.
 *
 * SPDX-License-Identifier: MIT
 */

#include "deal/deal.h"

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

/* The bound is tried for k below this. */
#define BOUND_ITEMS 16

/* A greatest sum that is no farther above it, as a part, is good enough. */
#define ENOUGH_PART 1024

/* Takes the costs: sorts the items and works out the bound.  PS_ERR_LIMIT. */
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

    /*
     * Some rank has k + 1 of the k * ranks + 1 costliest items.  It has at
     * least the cheapest k + 1 of these, and besides the cheapest of all.
     */
    d->bound = total / d->ranks + (total % d->ranks != 0);
    for (uint32_t k = 0; k < d->per_rank && k < BOUND_ITEMS; k++) {
        uint64_t sum = 0;

        for (uint32_t i = 0; i <= k; i++)
            sum += d->items[k * d->ranks - i].cost;
        for (uint32_t i = k + 1; i < d->per_rank; i++)
            sum += d->items[d->n + k - i].cost;
        d->bound = ps_mem_max(d->bound, sum);
    }
    d->enough = d->bound + d->bound / ENOUGH_PART;
    return PS_OK;
}

/* Puts the items in the order of their sets, each set sorted. */
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

    /* Sets by differencing, or in the other way if that is better. */
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
     * Sets are numbered in the order of the first item that each has.  That
     * has nothing to do with cost, so no rank gets the fullest set every time.
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
