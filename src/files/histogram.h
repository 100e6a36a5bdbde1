/*
 * histogram.h - read a histogram of sequence lengths from "length count" lines
 * or from the LENGTHS of framed token records.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef FILES_HISTOGRAM_H
#define FILES_HISTOGRAM_H

#include "packstream.h"

/* Sequence lengths to pack at one capacity. */
typedef struct length_counts {
    uint32_t capacity;    /* tokens per pack */
    ps_overlong overlong; /* treatment of sequences longer than the capacity */
    /* lengths packed, of whole sequences and pieces, in tokens */
    ps_histogram *histogram;
    uint64_t long_sequences; /* sequences longer than the capacity */
    uint64_t lost_tokens;    /* tokens dropped or cut off */
} length_counts;

/*
 * Reads files of "length count" lines or framed token records and adds their
 * sequences to each of the `n_to` elements of `to`.  Returns an exit status;
 * prints a message on failure.
 */
int histogram_read(length_counts *to, unsigned n_to, const char *const *names,
                   int n);

#endif
