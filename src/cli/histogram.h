/*
 * histogram.h - histograms from `length count` lines, or from token records that
 * say at their end what lengths they have.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_HISTOGRAM_H
#define CLI_HISTOGRAM_H

#include "packstream.h"

/* The sequences as packs of one capacity take them. */
typedef struct length_counts {
    uint32_t capacity;
    ps_overlong overlong;    /* what becomes of those that are longer */
    ps_histogram *histogram; /* of the sequences and pieces that are packed */
    uint64_t long_sequences; /* how many are longer than the capacity */
    uint64_t lost_tokens;    /* dropped with them, or cut off */
} length_counts;

/*
 * Adds what the files say to the lengths `to`, for each of `n_to` capacities:
 * lines, or the LENGTHS of framed token records.  An exit status, after a message if not STATUS_OK.
 */
int histogram_read(length_counts *to, unsigned n_to, const char *const *names,
                   int n);

#endif
