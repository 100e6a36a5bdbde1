/*
 * input.h - histograms from `length count` lines.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKPLAN_INPUT_H
#define PACKPLAN_INPUT_H

#include "packstream.h"

/*
 * Adds the lines of the files to a histogram, and refuses a length above
 * `capacity`.  An exit status, after a message if not STATUS_OK.
 */
int input_read(ps_histogram *h, uint32_t capacity, const char *const *names,
               int n);

#endif
