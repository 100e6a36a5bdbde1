/*
 * lamb.c - the optimiser: layer-wise steps for large batches.
 *
 * Sums over many numbers are made of sums over blocks, which are added in
 * their order: so the same weights come of any number of threads.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lamb.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK ((size_t)1 << 12)

struct lamb {
    lamb_options options;
    lamb_state state;
    size_t numbers;
    real *mean;
    real *square;
    lamb_part *parts;
    size_t n_parts;
    double (*sums)[2]; /* of blocks: of weights and of updates */
};

/* What all numbers of a step have in common. */
typedef struct lamb_now {
    double scale; /* of the gradient */
    double beta1, beta2;
    double correct1, correct2;
} lamb_now;

static size_t blocks_of(size_t count)
{
    return count / BLOCK + (count % BLOCK != 0);
}

static size_t block_end(size_t block, size_t count)
{
    return count - block * BLOCK < BLOCK ? count : (block + 1) * BLOCK;
}

static bool make_room(lamb *l, const lamb_part *parts, size_t n_parts)
{
    l->mean = calloc(l->numbers, sizeof *l->mean);
    l->square = calloc(l->numbers, sizeof *l->square);
    l->sums = calloc(blocks_of(l->numbers), sizeof *l->sums);
    l->parts = calloc(n_parts, sizeof *l->parts);
    if (l->mean == NULL || l->square == NULL || l->sums == NULL ||
        l->parts == NULL)
        return false;
    memcpy(l->parts, parts, n_parts * sizeof *parts);
    return true;
}

lamb *lamb_open(const lamb_options *options, size_t numbers,
                const lamb_part *parts, size_t n_parts)
{
    lamb *l = calloc(1, sizeof *l);

    if (l == NULL)
        return NULL;
    l->options = *options;
    l->state = (lamb_state){.product1 = 1, .product2 = 1};
    l->numbers = numbers;
    l->n_parts = n_parts;
    if (make_room(l, parts, n_parts))
        return l;
    lamb_free(l);
    return NULL;
}

void lamb_free(lamb *l)
{
    if (l == NULL)
        return;
    free(l->mean);
    free(l->square);
    free(l->sums);
    free(l->parts);
    free(l);
}

real *lamb_mean(lamb *l)
{
    return l->mean;
}

real *lamb_square(lamb *l)
{
    return l->square;
}

lamb_state lamb_get(const lamb *l)
{
    return l->state;
}

void lamb_set(lamb *l, lamb_state state)
{
    l->state = state;
}

/* ---- The gradient ---- */

static double sum_of_squares(const real *x, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

static double norm_of(lamb *l, const real *x)
{
    size_t blocks = blocks_of(l->numbers);
    double sum = 0;

#pragma omp parallel for schedule(static)
    for (size_t b = 0; b < blocks; b++)
        l->sums[b][0] = sum_of_squares(
            x + b * BLOCK, block_end(b, l->numbers) - b * BLOCK);
    for (size_t b = 0; b < blocks; b++)
        sum += l->sums[b][0];
    return sqrt(sum);
}

/* ---- Updates ---- */

/* What is taken from a weight, but for the learning rate and the ratio. */
static double update_of(const lamb *l, const lamb_now *now, double decay,
                        size_t i, double weight)
{
    double mean = (double)l->mean[i] / now->correct1;
    double square = (double)l->square[i] / now->correct2;

    return mean / (sqrt(square) + l->options.epsilon) + decay * weight;
}

static void learn(lamb *l, const lamb_now *now, size_t i, double gradient)
{
    double g = gradient * now->scale;

    l->mean[i] = (real)(now->beta1 * (double)l->mean[i] +
                        (1 - now->beta1) * g);
    l->square[i] = (real)(now->beta2 * (double)l->square[i] +
                          (1 - now->beta2) * g * g);
}

/* Moves the moments of a block on; squares of weights and updates added. */
static void first_pass(lamb *l, const lamb_now *now, const lamb_part *part,
                       size_t block, const real *weights,
                       const real *gradients)
{
    double decay = part->decays ? l->options.decay : 0;
    double sum[2] = {0, 0};

    for (size_t k = block * BLOCK; k < block_end(block, part->count); k++) {
        size_t i = part->offset + k;
        double weight = (double)weights[i];
        double update;

        learn(l, now, i, (double)gradients[i]);
        update = update_of(l, now, decay, i, weight);
        sum[0] += weight * weight;
        sum[1] += update * update;
    }
    l->sums[block][0] = sum[0];
    l->sums[block][1] = sum[1];
}

static void second_pass(const lamb *l, const lamb_now *now,
                        const lamb_part *part, size_t block, real *weights,
                        double rate)
{
    double decay = part->decays ? l->options.decay : 0;

    for (size_t k = block * BLOCK; k < block_end(block, part->count); k++) {
        size_t i = part->offset + k;
        double weight = (double)weights[i];

        weights[i] = (real)(weight -
                            rate * update_of(l, now, decay, i, weight));
    }
}

/* How long the weights are beside their update. */
static double trust_ratio(const lamb *l, const lamb_part *part)
{
    double sum[2] = {0, 0};

    if (!part->decays)
        return 1;
    for (size_t b = 0; b < blocks_of(part->count); b++) {
        sum[0] += l->sums[b][0];
        sum[1] += l->sums[b][1];
    }
    return sum[0] > 0 && sum[1] > 0 ? sqrt(sum[0] / sum[1]) : 1;
}

static void step_part(lamb *l, const lamb_now *now, const lamb_part *part,
                      real *weights, const real *gradients, double rate)
{
    size_t blocks = blocks_of(part->count);

#pragma omp parallel for schedule(static)
    for (size_t b = 0; b < blocks; b++)
        first_pass(l, now, part, b, weights, gradients);
    rate *= trust_ratio(l, part);
#pragma omp parallel for schedule(static)
    for (size_t b = 0; b < blocks; b++)
        second_pass(l, now, part, b, weights, rate);
}

static lamb_now begin_step(lamb *l, double norm, double factor)
{
    const lamb_options *o = &l->options;
    lamb_now now = {.scale = 1,
                    .beta1 = pow(o->beta1, factor),
                    .beta2 = pow(o->beta2, factor)};

    if (o->clip > 0 && norm > o->clip)
        now.scale = o->clip / norm;
    l->state.product1 *= now.beta1;
    l->state.product2 *= now.beta2;
    now.correct1 = 1 - l->state.product1;
    now.correct2 = 1 - l->state.product2;
    return now;
}

double lamb_step(lamb *l, real *weights, const real *gradients, double rate,
                 double factor)
{
    double norm = norm_of(l, gradients);
    lamb_now now;

    if (!isfinite(norm))
        return norm;
    now = begin_step(l, norm, factor);
    for (size_t p = 0; p < l->n_parts; p++)
        step_part(l, &now, &l->parts[p], weights, gradients, rate);
    return norm;
}
