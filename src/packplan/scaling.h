/*
 * scaling.h - how long the slowest of many devices takes for its batch.
 *
 * Un-padding leaves the padding out of a batch instead of packing it, so
 * that a step takes as long as the fullest batch of all devices.  With a
 * batch of B sequences drawn from the histogram, and time in proportion to
 * tokens, that is the expectation of the greatest of R sums of B lengths.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKPLAN_SCALING_H
#define PACKPLAN_SCALING_H

#include "packstream.h"

typedef struct scaling {
    uint32_t capacity;
    uint32_t batch;
    double mean; /* tokens of a batch */
    double unit; /* tokens between the sums that are told apart */
    size_t n;
    double *above; /* probability of a sum greater than i * unit */
} scaling;

/*
 * Works the distribution of the sums out: exactly where a batch holds less
 * than 2^21 tokens at most, else in steps of some tokens.  `batch` is at
 * most 65536; the histogram is not empty.  False if there is no memory.
 */
bool scaling_begin(scaling *s, const ps_histogram *h, uint32_t capacity,
                   uint32_t batch);
void scaling_end(scaling *s);

/* Expected tokens of the fullest batch on that many devices. */
double scaling_fullest(const scaling *s, uint32_t devices);

#endif
