/*
 * sort.h - sort items by cost.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_DEAL_SORT_H
#define LIB_DEAL_SORT_H

#include <stdint.h>

/* An item to assign; also represents a set or a pair when these are sorted. */
typedef struct ps_deal_item {
    uint64_t cost;
    uint32_t index; /* index in the caller's costs */
} ps_deal_item;

/*
 * Stable sorts by cost in descending order.  `spare` has room for n items.  Use
 * the insertion sort if there are few items, or few that are not in order.
 */
void ps_deal_sort(ps_deal_item *items, ps_deal_item *spare, uint32_t n);
void ps_deal_insertion_sort(ps_deal_item *items, uint32_t n);

#endif
