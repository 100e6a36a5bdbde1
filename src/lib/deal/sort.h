/*
 * sort.h - sort items by cost.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_DEAL_SORT_H
#define LIB_DEAL_SORT_H

#include <stdint.h>

/* An item to assign.  When sorting sets or pairs, it represents one of them. */
typedef struct ps_deal_item {
    uint64_t cost;
    uint32_t index; /* index in the caller's costs */
} ps_deal_item;

/*
 * Stable sort by cost in descending order.  `spare` has room for n items.
 * Insertion sort is for few items, or few out of place.
 */
void ps_deal_sort(ps_deal_item *items, ps_deal_item *spare, uint32_t n);
void ps_deal_insertion_sort(ps_deal_item *items, uint32_t n);

#endif
