/*
 * sets.h - divide sorted items into sets with balanced sums.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_DEAL_SETS_H
#define LIB_DEAL_SETS_H

#include "deal/deal.h"

/*
 * Divide the sorted items into `ranks` sets and return the maximum sum.  The
 * first function writes deal->sets and links, the second spare_sets and
 * spare_links.
 */
uint64_t ps_deal_difference(ps_deal *deal);
uint64_t ps_deal_longest_first(ps_deal *deal);

/*
 * Swaps items between deal->sets until the maximum sum is good enough, no swap
 * lowers it, or a limit on the work, proportional to `n`, is reached.
 * deal->items must have the items of set 0, then of set 1 and so on, each set
 * in descending order.
 */
void ps_deal_exchange(ps_deal *deal);

#endif
