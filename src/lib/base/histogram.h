/*
 * histogram.h - internal additions to ps_histogram.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_BASE_HISTOGRAM_H
#define LIB_BASE_HISTOGRAM_H

#include "packstream.h"

/* Index of the first bin whose length is at least `length`. */
size_t ps_histogram_find(const ps_histogram *h, uint32_t length);

/*
 * Upper bound, in bytes, on the memory of a histogram with `lengths` distinct
 * lengths, including temporary memory.
 */
uint64_t ps_histogram_bytes(uint32_t lengths);

#endif
