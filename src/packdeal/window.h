/*
 * window.h - move packs between the batches of a window.
 *
 * If a batch has more costly packs than ranks, but fewer than twice as many,
 * its packs cannot be assigned evenly: some ranks get one costly pack more than
 * others.  The packs of several batches are therefore sorted by cost and split
 * into rows of one pack per rank, whose costs are similar.  Each batch gets the
 * same number of rows, from all parts of the cost range.
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
    uint32_t i; /* index of the pack */
} window_item;

typedef struct window {
    uint32_t ranks;
    uint32_t batch;      /* packs of a full batch */
    uint32_t most;       /* packs of a full window */
    uint32_t n;          /* packs in this window */
    uint64_t first_step; /* index of the first batch in this window */
    uint32_t steps;      /* batches in this window; the last may be partial */
    uint32_t step;       /* index of the batch to take next */
    input_pack *packs;   /* [most] */
    window_item *items;  /* [most], to sort the packs */
    uint32_t *first;     /* [steps], index of the step's first pack, or n */
    /* [n], index of the next pack of the same step, or n */
    uint32_t *next;
} window;

/* Returns false if out of memory. */
bool window_open(window *w, const conf *c);
void window_close(window *w);

/* Assigns each pack to a batch. */
void window_arrange(window *w);

/*
 * Copies the packs of the next batch, in order, to `taken`.  Returns their
 * number.
 */
uint32_t window_take(window *w, input_pack *taken);

#endif
