/*
 * input.h - histograms from `length count` lines.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKPLAN_INPUT_H
#define PACKPLAN_INPUT_H

#include "packstream.h"

/* The sequences as packs of one capacity take them. */
typedef struct input_lengths {
    uint32_t capacity;
    ps_overlong overlong;    /* what becomes of those that are longer */
    ps_histogram *histogram; /* of the sequences and pieces that are packed */
    uint64_t long_sequences; /* how many are longer than the capacity */
    uint64_t lost_tokens;    /* dropped with them, or cut off */
} input_lengths;

/*
 * Adds the lines of the files to the lengths `to`, for each of `n_to`
 * capacities.  An exit status, after a message if not STATUS_OK.
 */
int input_read(input_lengths *to, unsigned n_to, const char *const *names,
               int n);

#endif
