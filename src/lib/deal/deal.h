/*
 * deal.h - assign items with costs to ranks, equally many to each, with
 * balanced sums.
 *
 * SPDX-License-Identifier: MIT
 *
 * Main header of module deal, which computes on numbers: it does no input or
 * output, and only ps_pack_cost depends on the format.  It uses only base.
 *
 *   cost        cost of a pack
 *   deal        the assignment, from costs to ranks
 *   sort        sort items by cost, equal costs by index
 *   difference  one set of items per rank, by differencing
 *   longest     the same, by longest processing time first
 *   exchange    balance the sets: swap items of the costliest one
 *   epoch       order of packs in an epoch
 *
 * Differencing is the method of Karmarkar and Karp (1982) with equal counts,
 * also used by the trainer verl.  The sorted items are cut into blocks of one
 * item per rank.  Repeatedly, the two blocks with the largest internal
 * differences are merged: the greatest sum of one is joined with the least of
 * the other, and so on, until one block remains.  Each rank thus gets one of
 * the costliest items and one of the cheapest.  This is a poor choice if a few
 * items cost as much as many others.  There, longest processing time first
 * (Graham 1969) is better: each item, in descending order, goes to the rank
 * with the least sum among those not full.
 *
 * Related work: Zeng et al. (2022), IV.B, sort all sequences of a global batch
 * and assign them round-robin: rank r gets r, r + R, r + 2R and so on, or in
 * alternating direction.  WLB-LLM (Wang et al. 2025) also balances packs by
 * attention cost.
 */

#ifndef LIB_DEAL_DEAL_H
#define LIB_DEAL_DEAL_H

#include <stdbool.h>
#include <stdint.h>

#include "deal/sort.h"
#include "packstream.h"

/* The items of one rank, linked in a ring, and their sum. */
typedef struct ps_deal_set {
    uint64_t sum;  /* cost of the items */
    uint32_t item; /* any of its items */
    uint32_t n;    /* number of items */
} ps_deal_set;

/* In sets of at most this many items, pairs are swapped as well. */
#define PS_DEAL_PAIRED 8
#define PS_DEAL_PAIRS (PS_DEAL_PAIRED * (PS_DEAL_PAIRED - 1) / 2)

struct ps_deal {
    uint32_t ranks;
    uint32_t per_rank; /* items per rank */
    uint32_t n; /* number of items, ranks * per_rank */
    uint64_t max;    /* maximum cost of a rank in the last deal */
    uint64_t bound;  /* lower bound on `max` */
    uint64_t enough; /* maximum sum that is good enough */
    ps_deal_item *items; /* [n], sorted; at the end set by set, per_rank each */
    ps_deal_item *spare; /* [n], temporary */
    ps_deal_set *sets;   /* per_rank blocks of `ranks` sets; at the end only the
                            first */
    uint32_t *links;     /* [n], next item in the same set */
    ps_deal_set *spare_sets; /* [ranks] */
    uint32_t *spare_links;   /* [n] */
    ps_deal_item *sums;  /* [ranks], sums of sets, for sorting */
    uint32_t *blocks;    /* [per_rank], heap of blocks, largest difference
                            first */
    uint32_t *order;     /* [ranks], sets from the least to the greatest sum */
    ps_deal_item pairs[2][PS_DEAL_PAIRS];
};

/* Joins the rings of items `a` and `b`, which belong to different sets. */
static inline void ps_deal_link(uint32_t *links, uint32_t a, uint32_t b)
{
    uint32_t next = links[a];

    links[a] = links[b];
    links[b] = next;
}

#endif
