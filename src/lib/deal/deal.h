/*
 * deal.h - assign items with costs to ranks, equally many to each, with
 * balanced sums.
 *
 * SPDX-License-Identifier: MIT
 *
 * Main header of module deal, which only computes: it does no input or output,
 * and only ps_pack_cost depends on the format.  It depends only on module base.
 *
 *   cost        cost of a pack
 *   deal        the assignment, from costs to ranks
 *   sort        sort items by cost, equal costs by index
 *   difference  one set of items per rank, by differencing
 *   longest     one set of items per rank, longest processing time first
 *   exchange    balance the sets by swapping items of the costliest set
 *   epoch       order of packs in an epoch
 *
 * Differencing is the method of Karmarkar and Karp (1982) with equal counts,
 * also used by the trainer verl.  The sorted items are cut into blocks of one
 * item per rank.  The two blocks with the largest internal differences are
 * merged repeatedly, until one block remains: the greatest sum of one block is
 * joined with the least sum of the other, and so on.  Each rank thus gets one
 * of the costliest items and one of the cheapest.  This is a poor choice if a
 * few items cost as much as many others.  In that case, longest processing time
 * first (Graham 1969) is better: the items are assigned in descending order of
 * cost, each to the rank with the least sum among the ranks that are not full.
 *
 * Related work: Zeng et al. (2022), IV.B, sort all sequences of a global batch
 * and assign them round-robin: rank r gets sequences r, r + R, r + 2R and so
 * on, or the direction alternates.  WLB-LLM (Wang et al. 2025) also balances
 * packs by attention cost.
 */

#ifndef LIB_DEAL_DEAL_H
#define LIB_DEAL_DEAL_H

#include <stdbool.h>
#include <stdint.h>

#include "deal/sort.h"
#include "packstream.h"

/* The items of one rank, linked in a ring, and their sum. */
typedef struct ps_deal_set {
    uint64_t sum;  /* total cost of the items */
    uint32_t item; /* one of the items */
    uint32_t n;    /* number of items */
} ps_deal_set;

/* Maximum size of sets in which pairs of items are swapped as well. */
#define PS_DEAL_PAIRED 8
#define PS_DEAL_PAIRS (PS_DEAL_PAIRED * (PS_DEAL_PAIRED - 1) / 2)

struct ps_deal {
    uint32_t ranks;
    uint32_t per_rank; /* items per rank */
    uint32_t n; /* number of items, ranks * per_rank */
    uint64_t max;    /* maximum cost of a rank in the last deal */
    uint64_t bound;  /* lower bound on `max` */
    uint64_t enough; /* maximum sum that is good enough */
    ps_deal_item *items; /* [n], sorted; finally set by set, per_rank each */
    ps_deal_item *spare; /* [n], temporary */
    ps_deal_set *sets;   /* per_rank blocks of `ranks` sets; finally only the
                            first block */
    uint32_t *links;     /* [n], next item in the same set */
    ps_deal_set *spare_sets; /* [ranks] */
    uint32_t *spare_links;   /* [n] */
    ps_deal_item *sums;  /* [ranks], sums of sets, to sort them */
    uint32_t *blocks;    /* [per_rank], heap of blocks by difference, largest
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
