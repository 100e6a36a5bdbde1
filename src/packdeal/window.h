/*
 * window.h - global batches of which packs may change places.
 *
 * A batch with more costly packs than ranks, but not twice as many, cannot be
 * dealt evenly: some rank has one more of them.  So the packs of several
 * batches are sorted by cost, and cut into rows of a pack for each rank, which
 * cost about the same.  Each batch gets equally many rows, cheap ones and
 * costly ones.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKDEAL_WINDOW_H
#define PACKDEAL_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "packdeal/conf.h"
#include "packdeal/input.h"

typedef struct window_item {
    uint64_t cost;
    uint32_t i; /* of the pack */
} window_item;

typedef struct window {
    uint32_t ranks;
    uint32_t batch; /* packs of one */
    uint32_t most;  /* packs of the window */
    uint32_t n;     /* packs in it */
    uint64_t first_step;
    uint32_t steps; /* batches in it, with one that is not whole */
    uint32_t step;  /* of these, which is taken next */
    input_pack *packs;
    window_item *items;
    uint32_t *first; /* of each of the steps: its first pack, or n */
    uint32_t *next;  /* of each pack: the next one of its step, or n */
} window;

/* False without memory. */
bool window_open(window *w, const conf *c);
void window_close(window *w);

/* Says which batch gets each pack. */
void window_arrange(window *w);

/* Gives the packs of the next batch, in their order; how many. */
uint32_t window_take(window *w, input_pack *taken);

#endif
