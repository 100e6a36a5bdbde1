/*
 * sort.c - radix sort of items by cost.
 *
 * SPDX-License-Identifier: MIT
 */

#include <string.h>

#include "deal/sort.h"

#define FEW 48 /* insertion sort is faster below this */

void ps_deal_insertion_sort(ps_deal_item *items, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        ps_deal_item item = items[i];
        uint32_t at = i;

        while (at > 0 && items[at - 1].cost < item.cost) {
            items[at] = items[at - 1];
            at--;
        }
        items[at] = item;
    }
}

/*
 * Sorts by the lowest byte of the costs first.  Each pass is stable.  A byte
 * that is equal in all costs needs no pass.
 */
void ps_deal_sort(ps_deal_item *items, ps_deal_item *spare, uint32_t n)
{
    uint32_t counts[8][256];
    ps_deal_item *from = items;
    ps_deal_item *to = spare;

    if (n < FEW) {
        ps_deal_insertion_sort(items, n);
        return;
    }
    memset(counts, 0, sizeof counts);
    for (uint32_t i = 0; i < n; i++)
        for (unsigned byte = 0; byte < 8; byte++)
            counts[byte][items[i].cost >> 8 * byte & 255]++;
    for (unsigned byte = 0; byte < 8; byte++) {
        uint32_t *count = counts[byte];
        uint32_t before = 0;
        ps_deal_item *swap = from;

        if (count[from[0].cost >> 8 * byte & 255] == n)
            continue;
        for (unsigned value = 256; value-- > 0;) {
            uint32_t here = count[value];

            count[value] = before;
            before += here;
        }
        for (uint32_t i = 0; i < n; i++)
            to[count[from[i].cost >> 8 * byte & 255]++] = from[i];
        from = to;
        to = swap;
    }
    if (from != items)
        memcpy(items, from, n * sizeof *items);
}
