/*
 * lamb.c - the LAMB optimiser.
 *
 * SPDX-License-Identifier: MIT
 */
#include "optim/lamb.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/arena.h"

struct tr_lamb {
    tr_device *device;
    tr_lamb_options options;
    tr_lamb_state state;
    tr_arena mean;
    tr_arena square;
    tr_part *parts;
    size_t n_parts;
};

tr_lamb *tr_lamb_open(tr_device *device, const tr_lamb_options *options,
                      size_t numbers, const tr_part *parts, size_t n_parts)
{
    tr_lamb *l = calloc(1, sizeof *l);

    if (l == NULL)
        return NULL;
    l->device = device;
    l->options = *options;
    l->state = (tr_lamb_state){.product1 = 1, .product2 = 1};
    l->n_parts = n_parts;
    l->parts = calloc(n_parts, sizeof *l->parts);
    if (l->parts == NULL || !tr_arena_open_shards(&l->mean, device, numbers) ||
        !tr_arena_open_shards(&l->square, device, numbers)) {
        tr_lamb_free(l);
        return NULL;
    }
    memcpy(l->parts, parts, n_parts * sizeof *parts);
    return l;
}

void tr_lamb_free(tr_lamb *l)
{
    if (l == NULL)
        return;
    tr_arena_free(&l->mean);
    tr_arena_free(&l->square);
    free(l->parts);
    free(l);
}

real *tr_lamb_mean(tr_lamb *l)
{
    return l->mean.host;
}

real *tr_lamb_square(tr_lamb *l)
{
    return l->square.host;
}

void tr_lamb_fetch(tr_lamb *l)
{
    tr_arena_fetch(&l->mean);
    tr_arena_fetch(&l->square);
}

void tr_lamb_store(tr_lamb *l)
{
    tr_arena_store(&l->mean);
    tr_arena_store(&l->square);
}

tr_lamb_state tr_lamb_get(const tr_lamb *l)
{
    return l->state;
}

void tr_lamb_set(tr_lamb *l, tr_lamb_state state)
{
    l->state = state;
}

void tr_lamb_step(tr_lamb *l, real *weights, const real *gradients, double rate,
                  double factor)
{
    const tr_lamb_options *o = &l->options;
    tr_lamb_args step = {.trust = o->trust,
                           .beta1 = pow(o->beta1, factor),
                           .beta2 = pow(o->beta2, factor),
                           .epsilon = o->epsilon,
                           .decay = o->decay,
                           .clip = o->clip,
                           .rate = rate};

    l->state.product1 *= step.beta1;
    l->state.product2 *= step.beta2;
    step.correct1 = 1 - l->state.product1;
    step.correct2 = 1 - l->state.product2;
    l->device->ops->lamb(l->device, &step, l->n_parts, l->parts, l->mean.n,
                         weights, gradients, l->mean.at, l->square.at);
}
