/*
 * scaling.c - how long the slowest of many devices takes for its batch.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packplan/scaling.h"

#include <math.h>
#include <stdlib.h>

#include "packplan/fourier.h"

/* Sums that are told apart, at most. */
#define MAX_SUMS ((size_t)1 << 21)

/*
 * The probability of each length, in units; a length between two multiples
 * is divided between them so that the mean stays what it is.
 */
static void spread(const scaling *s, const ps_histogram *h, double *to)
{
    double all = (double)ps_histogram_sequences(h);

    for (size_t i = 0; i < ps_histogram_size(h); i++) {
        double at = ps_histogram_length(h, i) / s->unit;
        double share = (double)ps_histogram_count(h, i) / all;
        size_t below = (size_t)at;
        double rest = at - (double)below;

        to[below] += share * (1 - rest);
        to[below + 1] += share * rest;
    }
}

/* From the probability of each sum to that of greater ones. */
static void accumulate(double *values, size_t n)
{
    double above = 0;

    for (size_t i = n; i-- > 0;) {
        /* Below nothing is rounding. */
        double here = values[i] > 0 ? values[i] : 0;

        values[i] = above < 1 ? above : 1;
        above += here;
    }
}

bool scaling_begin(scaling *s, const ps_histogram *h, uint32_t capacity,
                   uint32_t batch)
{
    size_t units = (MAX_SUMS - 1) / batch - 1;

    if (units > capacity)
        units = capacity;
    *s = (scaling){.capacity = capacity,
                   .batch = batch,
                   .mean = (double)batch * (double)ps_histogram_tokens(h) /
                           (double)ps_histogram_sequences(h),
                   .unit = (double)capacity / (double)units};
    for (s->n = 1; s->n <= (units + 1) * batch;)
        s->n *= 2;
    s->above = calloc(s->n, sizeof *s->above);
    if (s->above == NULL)
        return false;
    spread(s, h, s->above);
    if (!fourier_sum(s->above, s->n, batch)) {
        scaling_end(s);
        return false;
    }
    accumulate(s->above, s->n);
    return true;
}

void scaling_end(scaling *s)
{
    free(s->above);
    s->above = NULL;
}

/* The sum of the probabilities that the greatest is above each value. */
double scaling_fullest(const scaling *s, uint32_t devices)
{
    double sum = 0;

    for (size_t i = 0; i < s->n; i++)
        sum += s->above[i] < 1 ? -expm1(devices * log1p(-s->above[i])) : 1;
    return sum * s->unit;
}

double scaling_speed_up(const scaling *s, uint32_t devices)
{
    return (double)s->batch * (double)s->capacity /
           scaling_fullest(s, devices);
}
