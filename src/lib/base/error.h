/*
 * error.h - filling in a ps_error.
 *
 * SPDX-License-Identifier: MIT
 *
 * This module, base, is used by all other modules and uses none of them:
 *
 *   error.h      a function that fails fills in a ps_error and returns its code
 *   mem_bound.h  allocation, growing arrays, and memory bounds of both
 *   bitset.h     set of integers with fast predecessor search
 *   histogram.h  number of sequences of each length
 *   serial.h     saving values to bytes, and loading untrusted bytes
 *   thread.h     threads that handle no signals
 *   hash.h, random.h, prefetch.h
 *                XXH3, SplitMix64, cache prefetch
 *
 * Little-endian access to unaligned bytes is in src/common/bytes.h, which the
 * programs use as well.
 */

#ifndef LIB_BASE_ERROR_H
#define LIB_BASE_ERROR_H

#include "packstream.h"

#if defined(__GNUC__)
#define PS_PRINTF(a, b) __attribute__((format(printf, a, b)))
#else
#define PS_PRINTF(a, b)
#endif

/*
 * Fills in `err`, unless it is NULL, and returns `code`.  Bytes outside
 * printable ASCII are replaced by '?'.
 */
ps_result ps_fail(ps_error *err, ps_result code, const char *format, ...)
    PS_PRINTF(3, 4);

/*
 * PS_ERR_IO with the text "WHAT: description of errno".  Copies errno to `err`.
 */
ps_result ps_fail_errno(ps_error *err, const char *what);

/* PS_ERR_MEMORY with the text "out of memory". */
ps_result ps_fail_memory(ps_error *err);

#endif
