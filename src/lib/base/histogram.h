/*
 * histogram.h - what the library needs of ps_histogram beyond packstream.h.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_BASE_HISTOGRAM_H
#define LIB_BASE_HISTOGRAM_H

#include "packstream.h"

/* Index of the first bin of at least that length. */
size_t ps_histogram_find(const ps_histogram *h, uint32_t length);

/* The most that a histogram of so many lengths takes, and its making. */
uint64_t ps_histogram_bytes(uint32_t lengths);

#endif
