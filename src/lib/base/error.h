/*
 * error.h - filling a ps_error.
 *
 * This room, base, has what every other room needs, and calls none of them:
 *
 *   error.h      a function that fails fills a ps_error and returns its code
 *   mem_bound.h  allocating, growing arrays, and bounds of both
 *   bitset.h     a set of numbers that finds the next lower member fast
 *   histogram.h  how many sequences there are of each length
 *   serial.h     numbers saved to bytes, and loaded from damaged ones
 *   thread.h     threads that handle no signals
 *   hash.h, random.h, prefetch.h
 *                XXH3, SplitMix64, and asking for bytes in advance
 *
 * Numbers in unaligned bytes are in src/common/bytes.h, which the programs
 * use as well.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_BASE_ERROR_H
#define LIB_BASE_ERROR_H

#include "packstream.h"

#if defined(__GNUC__)
#define PS_PRINTF(a, b) __attribute__((format(printf, a, b)))
#else
#define PS_PRINTF(a, b)
#endif

/* Fills `err`, unless it is NULL, and returns `code`. */
ps_result ps_fail(ps_error *err, ps_result code, const char *format, ...)
    PS_PRINTF(3, 4);

/* PS_ERR_IO for errno, which is kept: "WHAT: its description". */
ps_result ps_fail_errno(ps_error *err, const char *what);

/* PS_ERR_MEMORY. */
ps_result ps_fail_memory(ps_error *err);

#endif
