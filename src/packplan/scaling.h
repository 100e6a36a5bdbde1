/*
 * scaling.h - expected time that the slowest of many devices takes for a batch.
 *
 * Unpadding removes the padding of a batch instead of packing it, so a step
 * takes as long as the fullest batch of all devices.  For batches of B
 * sequences drawn from the histogram, and time proportional to tokens, this is
 * the expected maximum of R sums of B lengths.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKPLAN_SCALING_H
#define PACKPLAN_SCALING_H

#include "packstream.h"

typedef struct scaling {
    uint32_t capacity; /* tokens per pack */
    uint32_t batch;    /* sequences per batch */
    double mean;       /* mean tokens per batch */
    double unit;       /* tokens between adjacent sums */
    size_t n;          /* number of distinct sums */
    /* [n], probability of a sum greater than i * unit; owned */
    double *above;
} scaling;

/*
 * Computes the distribution of the sums: exact if a batch has fewer than 2^21
 * tokens, otherwise rounded to multiples of `unit`.  `batch` is at most 65536;
 * the histogram must not be empty.  Returns false if out of memory.
 */
bool scaling_begin(scaling *s, const ps_histogram *h, uint32_t capacity,
                   uint32_t batch);
void scaling_end(scaling *s);

/* Expected tokens of the fullest batch on `devices` devices. */
double scaling_fullest(const scaling *s, uint32_t devices);

#endif
