/*
 * window.c - move packs between the batches of a window.
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
    w->items = calloc(most, sizeof *w->items);
    w->first = calloc((size_t)c->window + 1, sizeof *w->first);
    w->next = calloc(most, sizeof *w->next);
    return w->packs != NULL && w->items != NULL && w->first != NULL &&
           w->next != NULL;
}

void window_close(window *w)
{
    free(w->packs);
    free(w->items);
    free(w->first);
    free(w->next);
}

/* Compares by cost in descending order, and equal costs by input order. */
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
    uint32_t *turns = w->first;

    for (uint32_t i = 0; i < n; i++)
        w->items[i] = (window_item){w->packs[i].cost, i};
    if (n > 0)
        qsort(w->items, n, sizeof *w->items, compare);
    /*
     * Shuffle the batches, because otherwise the first batch would always get
     * the costliest row.
     */
    for (uint32_t i = 0; i < whole; i++)
        turns[i] = (uint32_t)ps_shuffled(whole, w->first_step, 0, i);
    /* Assign rows to the batches forwards, then backwards, and so on. */
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t row = i / w->ranks;
        const uint32_t at = row % whole;

        w->next[w->items[i].i] =
            turns[row / whole % 2 == 0 ? at : whole - 1 - at];
    }
    for (uint32_t i = n; i < w->n; i++)
        w->next[i] = whole;

    /* Link the packs of each batch, starting with the last pack. */
    for (uint32_t step = 0; step <= whole; step++)
        w->first[step] = w->n;
    for (uint32_t i = w->n; i-- > 0;) {
        const uint32_t step = w->next[i];

        w->next[i] = w->first[step];
        w->first[step] = i;
    }
    w->steps = whole + (n < w->n);
}

uint32_t window_take(window *w, input_pack *taken)
{
    uint32_t n = 0;

    if (w->step == w->steps)
        return 0;
    for (uint32_t i = w->first[w->step]; i < w->n; i = w->next[i])
        taken[n++] = w->packs[i];
    w->step++;
    return n;
}
