/*
 * histogram.h - how often each value occurred.
 *
 * Values are lengths or depths: at least 1.  Memory follows the number of
 * different values, and n different lengths take about n * n / 2 tokens to
 * write down, so it grows with the square root of the input at worst.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_HISTOGRAM_H
#define PACKSTAT_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct histogram_bin {
    uint32_t value; /* 0: a free slot */
    uint64_t count;
} histogram_bin;

/* All zeros is an empty histogram. */
typedef struct histogram {
    histogram_bin *bins; /* hashed, or sorted after histogram_sort */
    size_t n_slots;      /* a power of two, or 0 */
    size_t n_used;
} histogram;

/* Counts a value >= 1; false if memory ran out. */
bool histogram_add(histogram *h, uint32_t value);

/*
 * Brings the bins into ascending order, bins[0] to bins[n_used - 1].  After
 * that nothing may be added.
 */
void histogram_sort(histogram *h);

/* The least and the greatest value of a sorted one; 0 of an empty one. */
uint32_t histogram_min(const histogram *h);
uint32_t histogram_greatest(const histogram *h);

void histogram_free(histogram *h);

#endif
