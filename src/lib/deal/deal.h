/*
 * deal.h - items with costs to ranks, equally many to each, with even sums.
 *
 * This is the main header of the room `deal`.  It takes numbers and gives
 * numbers: it reads nothing, and knows the format only as ps_pack_cost does.
 *
 *     cost        what a pack costs
 *     deal        a deal, from costs to ranks
 *     sort        its items by cost, equal ones by index
 *     difference  a set of items for each rank, by differencing
 *     longest     the same, by longest processing time first
 *     exchange    evens the sets out: swaps items of the fullest one
 *     epoch       the order of packs in an epoch
 *
 * Differencing is that of Karmarkar and Karp (1982) with equal counts, as the
 * trainer verl has it, too.  The sorted items are cut into blocks of one item
 * for each rank.  The two blocks whose sums differ most within become one, the
 * greatest sum of one joined with the least of the other, until a single block
 * is left.  So each rank has one of the costliest items and one of the
 * cheapest, which is wrong where a few items cost as much as many others.
 * There longest processing time first (Graham 1969) is better: the next item
 * goes to the rank with the least sum of those that are not full.
 *
 * Zeng et al. (2022), IV.B, sort all sequences of a global batch and deal them
 * round: rank r gets r, r + R, r + 2R and so on, or there and back.  WLB-LLM
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

/* An item to be dealt.  Where sets or pairs are sorted, it stands for one. */
typedef struct ps_deal_item {
    uint64_t cost;
    uint32_t index; /* in the costs that the caller gave */
} ps_deal_item;

/* The items that one rank is to get: their sum, and a ring of links. */
typedef struct ps_deal_set {
    uint64_t sum;
    uint32_t item; /* any of them */
    uint32_t n;
} ps_deal_set;

/* In sets of at most that many items pairs of them are swapped, too. */
#define PS_DEAL_PAIRED 8
#define PS_DEAL_PAIRS (PS_DEAL_PAIRED * (PS_DEAL_PAIRED - 1) / 2)

struct ps_deal {
    uint32_t ranks;
    uint32_t per_rank;
    uint32_t n; /* ranks * per_rank */
    uint64_t max;
    uint64_t bound;
    uint64_t enough; /* the greatest sum that is good enough */
    ps_deal_item *items; /* sorted; at last set by set, `per_rank` of each */
    ps_deal_item *spare; /* to sort with */
    ps_deal_set *sets;   /* blocks of `ranks` each; at last only the first */
    uint32_t *links;     /* from each item to the next one of its set */
    ps_deal_set *spare_sets; /* `ranks` of them */
    uint32_t *spare_links;
    ps_deal_item *sums;  /* of sets, to sort these */
    uint32_t *blocks;    /* a heap of blocks, the least even first */
    uint32_t *order;     /* sets from the emptiest to the fullest */
    ps_deal_item pairs[2][PS_DEAL_PAIRS];
};

/* Joins the rings of items `a` and `b`, which are of two sets. */
static inline void ps_deal_link(uint32_t *links, uint32_t a, uint32_t b)
{
    uint32_t next = links[a];

    links[a] = links[b];
    links[b] = next;
}

/*
 * Sorts by cost, the greatest first; equal costs keep their order.  `spare` has
 * as many items.  Insertion sort is for few items, or few out of place.
 */
void ps_deal_sort(ps_deal_item *items, ps_deal_item *spare, uint32_t n);
void ps_deal_insertion_sort(ps_deal_item *items, uint32_t n);

/*
 * Make `ranks` sets of the sorted items, and return the greatest sum: the first
 * in deal->sets and links, the second in spare_sets and spare_links.
 */
uint64_t ps_deal_difference(ps_deal *deal);
uint64_t ps_deal_longest_first(ps_deal *deal);

/*
 * Swaps items between deal->sets until the greatest sum is good enough, no swap
 * lowers it, or `n` times a constant of work has been done.  deal->items has
 * the `per_rank` items of set 0, then those of set 1 and so on, each set in
 * descending order.
 */
void ps_deal_exchange(ps_deal *deal);

#endif
