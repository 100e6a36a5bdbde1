/*
 * window.c - global batches of which packs may change places.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packdeal/window.h"

#include <stdlib.h>

bool window_open(window *w, const conf *c)
{
    const uint32_t batch = c->ranks * c->per_rank;
    const uint32_t most = batch * c->window;

    *w = (window){.ranks = c->ranks, .batch = batch, .most = most};
    w->packs = calloc(most, sizeof *w->packs);
    w->costs = calloc(most, sizeof *w->costs);
    w->step_of = calloc(most, sizeof *w->step_of);
    w->items = calloc(most, sizeof *w->items);
    return w->packs != NULL && w->costs != NULL && w->step_of != NULL &&
           w->items != NULL;
}

void window_close(window *w)
{
    free(w->packs);
    free(w->costs);
    free(w->step_of);
    free(w->items);
}

/* The costliest first, equal ones in their order. */
static int compare(const void *a, const void *b)
{
    const window_item *x = a;
    const window_item *y = b;

    if (x->cost != y->cost)
        return x->cost > y->cost ? -1 : 1;
    return x->i < y->i ? -1 : x->i > y->i;
}

void window_arrange(window *w)
{
    const uint32_t whole = w->n / w->batch;
    const uint32_t n = whole * w->batch;

    for (uint32_t i = 0; i < n; i++)
        w->items[i] = (window_item){w->costs[i], i};
    if (n > 0)
        qsort(w->items, n, sizeof *w->items, compare);
    /* Rows go there and back through the batches. */
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t row = i / w->ranks;
        const uint32_t at = row % whole;
        const uint32_t turn = row / whole % 2 == 0 ? at : whole - 1 - at;

        /* Else the first batch of each window had the costliest row. */
        w->step_of[w->items[i].i] =
            (uint32_t)ps_shuffled(whole, w->first, 0, turn);
    }
    for (uint32_t i = n; i < w->n; i++)
        w->step_of[i] = whole;
    w->steps = whole + (n < w->n);
}

uint32_t window_take(window *w, input_pack *taken, uint64_t *costs)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->n; i++)
        if (w->step_of[i] == w->step) {
            taken[n] = w->packs[i];
            costs[n++] = w->costs[i];
        }
    w->step += n > 0;
    return n;
}
