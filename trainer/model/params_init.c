/*
 * params_init.c - initial weights.
 *
 * Each number is a function of the seed and its index alone, so threads can
 * share the work in any order.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model/params.h"

#include <math.h>
#include <string.h>

#include "model/counter_rng.h"

#define CUT 2.0 /* in standard deviations */

/* Returns a number that is at least 0 and below 1. */
static double uniform(uint64_t seed, uint64_t place)
{
    return (double)(tr_counter_rng(seed, place) >> 11) * 0x1p-53;
}

/*
 * Draws from the truncated normal distribution by rejection: a number drawn
 * uniformly between the cuts is accepted with a probability proportional to the
 * density.
 */
static double draw(uint64_t seed)
{
    for (uint64_t i = 0;; i += 2) {
        const double z = CUT * (2 * uniform(seed, i) - 1);

        if (uniform(seed, i + 1) < exp(-z * z / 2))
            return z;
    }
}

static void draw_tensor(real *weights, size_t n, double deviation,
                        uint64_t seed)
{
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++)
        weights[i] = (real)(deviation * draw(tr_counter_rng(seed, i)));
}

static void set_all(real *weights, size_t n, real value)
{
    for (size_t i = 0; i < n; i++)
        weights[i] = value;
}

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name);
    const size_t m = strlen(end);

    return n >= m && strcmp(name + n - m, end) == 0;
}

void tr_params_init(tr_params *params, uint64_t seed)
{
    for (size_t i = 0; i < params->n_tensors; i++) {
        const tr_tensor *const t = params->tensors + i;
        const size_t n = (size_t)t->rows * t->columns;
        real *const weights = params->weights.host + t->offset;

        if (t->decays)
            draw_tensor(weights, n, t->deviation, tr_counter_rng(seed, i));
        else
            set_all(weights, n, ends_with(t->name, ".weight"));
    }
}
