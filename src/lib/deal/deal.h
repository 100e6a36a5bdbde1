/*
 * deal.h - items with costs to ranks, equally many to each, with even sums.
 *
 * This is the main header of the room `deal`.  It takes numbers and gives
 * numbers: it reads nothing, and knows the format only as ps_pack_cost does.
 *
 *     cost        what a pack costs
 *     deal        a deal, from costs to ranks
 *     sort        its items by cost, equal ones by index
 *     difference  its sets, all but even where costs are alike
 *     longest     its sets where some items cost as much as many others
 *     exchange    mends them: swaps items of the fullest set
 *
 * Differencing is that of Karmarkar and Karp (1982) with equal counts, as the
 * trainer verl has it, too: sorted items are cut into blocks of one for each
 * rank.  The two blocks that are least even become one, the greatest sum of
 * the one with the least of the other, until a single block is left.  So each
 * rank has one of the costliest items, and one of the cheapest, which is wrong
 * where a few cost as much as many.  Then the longest processing time first
 * (Graham 1969) is better: the next item goes to the rank with the least, among
 * those that have less than their number.
 *
 * Zeng et al. (2022), IV.B, sort all sequences of a global batch and deal
 * them round: rank r gets r, r + R, r + 2R and so on, or there and back.  WLB-LLM
 * (Wang et al. 2025) balances packs by the cost of attention, too.
 *
 * The room uses base alone.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_DEAL_DEAL_H
#define LIB_DEAL_DEAL_H

#include <stdbool.h>
#include <stdint.h>

#include "packstream.h"

/* A cost, and whose it is. */
typedef struct ps_deal_item {
    uint64_t cost;
    uint32_t index;
} ps_deal_item;

/* A set that is to be a rank's: its sum, and its items as a ring of links. */
typedef struct ps_deal_set {
    uint64_t sum;
    uint32_t item; /* any of them */
    uint32_t n;
} ps_deal_set;

/* Pairs of items are swapped in sets of up to so many. */
#define PS_DEAL_PAIRED 8
#define PS_DEAL_PAIRS (PS_DEAL_PAIRED * (PS_DEAL_PAIRED - 1) / 2)

struct ps_deal {
    uint32_t ranks;
    uint32_t per_rank;
    uint32_t n; /* ranks * per_rank */
    uint64_t max;
    uint64_t bound;
    ps_deal_item *items; /* sorted, later `per_rank` of each set in turn */
    ps_deal_item *spare; /* to sort with */
    ps_deal_set *sets;   /* blocks of `ranks` each, later only one */
    uint32_t *links;     /* the next item of each in its set */
    ps_deal_set *spare_sets; /* `ranks` of them */
    uint32_t *spare_links;
    ps_deal_item *sums;  /* of sets, to sort these */
    uint32_t *blocks;    /* a heap of blocks, the least even first */
    uint32_t *order;     /* sets from the emptiest to the fullest */
    ps_deal_item pairs[2][PS_DEAL_PAIRS];
};

/* Two rings of items become one. */
static inline void ps_deal_link(uint32_t *links, uint32_t a, uint32_t b)
{
    uint32_t next = links[a];

    links[a] = links[b];
    links[b] = next;
}

/* A deal is even enough so near to the bound: a thousandth. */
static inline uint64_t ps_deal_near(const ps_deal *deal)
{
    return deal->bound + deal->bound / 1024;
}

/*
 * Sorts by cost, the greatest first; equal costs keep their order.  `spare` has
 * as many items.  Insertion sort is for few items, or few out of place.
 */
void ps_deal_sort(ps_deal_item *items, ps_deal_item *spare, uint32_t n);
void ps_deal_insertion_sort(ps_deal_item *items, uint32_t n);

/*
 * Each makes `ranks` sets of sorted items and returns the greatest sum: the
 * first makes deal->sets, the second deal->spare_sets.
 */
uint64_t ps_deal_difference(ps_deal *deal);
uint64_t ps_deal_longest_first(ps_deal *deal);

/*
 * Mends deal->sets until the fullest is near the bound, nothing helps, or the
 * work has been `n` times a constant.  deal->items has the items of set 0 up
 * to `per_rank`, then those of set 1, each in descending order.
 */
void ps_deal_exchange(ps_deal *deal);

#endif
