/*
 * lamb.c - the optimiser: layer-wise steps for large batches.
 *
 * SPDX-License-Identifier: MIT
 */
#include "optim/lamb.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/arena.h"

struct lamb {
    bert_device *device;
    lamb_options options;
    lamb_state state;
    bert_arena mean;
    bert_arena square;
    bert_part *parts;
    size_t n_parts;
};

lamb *lamb_open(bert_device *device, const lamb_options *options,
                size_t numbers, const bert_part *parts, size_t n_parts)
{
    lamb *l = calloc(1, sizeof *l);

    if (l == NULL)
        return NULL;
    l->device = device;
    l->options = *options;
    l->state = (lamb_state){.product1 = 1, .product2 = 1};
    l->n_parts = n_parts;
    l->parts = calloc(n_parts, sizeof *l->parts);
    if (l->parts == NULL || !bert_arena_open(&l->mean, device, numbers) ||
        !bert_arena_open(&l->square, device, numbers)) {
        lamb_free(l);
        return NULL;
    }
    memcpy(l->parts, parts, n_parts * sizeof *parts);
    return l;
}

void lamb_free(lamb *l)
{
    if (l == NULL)
        return;
    bert_arena_free(&l->mean);
    bert_arena_free(&l->square);
    free(l->parts);
    free(l);
}

real *lamb_mean(lamb *l)
{
    return l->mean.host;
}

real *lamb_square(lamb *l)
{
    return l->square.host;
}

void lamb_fetch(lamb *l)
{
    bert_arena_fetch(&l->mean);
    bert_arena_fetch(&l->square);
}

void lamb_store(lamb *l)
{
    bert_arena_store(&l->mean);
    bert_arena_store(&l->square);
}

lamb_state lamb_get(const lamb *l)
{
    return l->state;
}

void lamb_set(lamb *l, lamb_state state)
{
    l->state = state;
}

void lamb_step(lamb *l, real *weights, const real *gradients, double rate,
               double factor)
{
    const lamb_options *o = &l->options;
    bert_lamb_step step = {.beta1 = pow(o->beta1, factor),
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
