/*
 * lamb.c - a LAMB step over all weights.
 *
 * Sums over many numbers are computed from sums over fixed blocks, in order, so
 * results do not depend on the number of threads.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cpu/device.h"

#include <math.h>
#include <stdlib.h>

#define BLOCK ((size_t)1 << 12)

/* Arguments and scratch of a step. */
typedef struct work {
    const tr_lamb_args *step;
    double scale; /* factor applied to the gradient by clipping */
    real *weights;
    const real *gradients;
    real *mean;
    real *square;
    double (*sums)[2]; /* per block: squares of weights and of updates */
} work;

static size_t blocks_of(size_t count)
{
    return count / BLOCK + (count % BLOCK != 0);
}

static size_t block_end(size_t block, size_t count)
{
    return count - block * BLOCK < BLOCK ? count : (block + 1) * BLOCK;
}

static bool make_room(tr_cpu *c, size_t blocks)
{
    if (c->n_sums >= blocks)
        return true;
    free(c->sums);
    c->sums = calloc(blocks, sizeof *c->sums);
    c->n_sums = c->sums ? blocks : 0;
    if (!c->sums)
        c->failed = "no memory for the optimiser's sums";
    return c->sums;
}

/* ---- The gradient ---- */

static double sum_of_squares(const real *x, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

static double norm_of(const real *x, size_t n, double (*sums)[2])
{
    const size_t blocks = blocks_of(n);
    double sum = 0;

#pragma omp parallel for schedule(static)
    for (size_t b = 0; b < blocks; b++)
        sums[b][0] = sum_of_squares(x + b * BLOCK,
                                    block_end(b, n) - b * BLOCK);
    for (size_t b = 0; b < blocks; b++)
        sum += sums[b][0];
    return sqrt(sum);
}

/* ---- Updates ---- */

/* Returns the update of a weight, before learning rate and trust ratio. */
static double update_of(const work *w, double decay, size_t i, double weight)
{
    const double mean = (double)w->mean[i] / w->step->correct1;
    const double square = (double)w->square[i] / w->step->correct2;

    return mean / (sqrt(square) + w->step->epsilon) + decay * weight;
}

static void learn(const work *w, size_t i)
{
    const double beta1 = w->step->beta1;
    const double beta2 = w->step->beta2;
    const double g = (double)w->gradients[i] * w->scale;

    w->mean[i] = (real)(beta1 * (double)w->mean[i] + (1 - beta1) * g);
    w->square[i] = (real)(beta2 * (double)w->square[i]
                          + (1 - beta2) * g * g);
}

/* Updates a block's moments, and sums the squares of weights and updates. */
static void first_pass(const work *w, const tr_part *part, size_t block)
{
    const double decay = part->decays ? w->step->decay : 0;
    double sum[2] = {0, 0};

    for (size_t k = block * BLOCK; k < block_end(block, part->count); k++) {
        const size_t i = part->offset + k;
        const double weight = (double)w->weights[i];
        double update;

        learn(w, i);
        update = update_of(w, decay, i, weight);
        sum[0] += weight * weight;
        sum[1] += update * update;
    }
    w->sums[block][0] = sum[0];
    w->sums[block][1] = sum[1];
}

static void second_pass(const work *w, const tr_part *part, size_t block,
                        double rate)
{
    const double decay = part->decays ? w->step->decay : 0;

    for (size_t k = block * BLOCK; k < block_end(block, part->count); k++) {
        const size_t i = part->offset + k;
        const double weight = (double)w->weights[i];

        w->weights[i] = (real)(weight
                               - rate * update_of(w, decay, i, weight));
    }
}

/* Returns the norm of the weights over the norm of the update. */
static double trust_ratio(const work *w, const tr_part *part)
{
    double sum[2] = {0, 0};

    if (!part->decays || !w->step->trust)
        return 1;
    for (size_t b = 0; b < blocks_of(part->count); b++) {
        sum[0] += w->sums[b][0];
        sum[1] += w->sums[b][1];
    }
    return sum[0] > 0 && sum[1] > 0 ? sqrt(sum[0] / sum[1]) : 1;
}

static void step_part(const work *w, const tr_part *part)
{
    const size_t blocks = blocks_of(part->count);
    double rate = w->step->rate;

#pragma omp parallel for schedule(static)
    for (size_t b = 0; b < blocks; b++)
        first_pass(w, part, b);
    rate *= trust_ratio(w, part);
#pragma omp parallel for schedule(static)
    for (size_t b = 0; b < blocks; b++)
        second_pass(w, part, b, rate);
}

/* Counts a step.  Returns false if a loss or the gradient is not finite. */
static bool count_step(tr_cpu *c, double norm)
{
    tr_results *const r = &c->results;

    c->halted |= !isfinite(norm);
    for (int i = 0; i < TR_LOSSES; i++)
        c->halted |= !isfinite(r->loss[i]);
    if (c->halted)
        return false;
    r->gradient = norm;
    r->steps++;
    for (int i = 0; i < TR_LOSSES; i++)
        r->sum[i] += r->loss[i];
    return true;
}

void tr_cpu_lamb(tr_device *d, const tr_lamb_args *step, size_t n_parts,
                 const tr_part *parts, size_t numbers, real *weights,
                 const real *gradients, real *mean, real *square)
{
    tr_cpu *const c = tr_cpu_of(d);
    work w = {.step = step, .scale = 1, .weights = weights,
              .gradients = gradients, .mean = mean, .square = square};
    double norm;

    if (c->failed || c->halted || !make_room(c, blocks_of(numbers)))
        return;
    w.sums = c->sums;
    norm = norm_of(gradients, numbers, c->sums);
    if (!count_step(c, norm))
        return;
    if (step->clip > 0 && norm > step->clip)
        w.scale = step->clip / norm;
    for (size_t p = 0; p < n_parts; p++)
        step_part(&w, parts + p);
}
