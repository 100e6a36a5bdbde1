/*
 * error.h - filling in a ps_error.
 *
 * SPDX-License-Identifier: MIT
 *
 * All other modules depend on this module, base, which depends on no other
 * module:
 *
 *   error.h      fill in a ps_error and return its code
 *   mem_bound.h  allocations, growing arrays, and bounds on their memory
 *   bitset.h     set of integers with fast predecessor search
 *   histogram.h  number of sequences of each length
 *   serial.h     saving values to bytes, and loading untrusted bytes
 *   thread.h     threads that handle no signals
 *   hash.h, random.h, prefetch.h
 *                XXH3, SplitMix64, cache prefetch
 *
 * src/common/bytes.h, which the programs use as well, provides access to
 * little-endian numbers at unaligned addresses.
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
 * Fails with PS_ERR_IO and the text "WHAT: description of errno".  Copies errno
 * to `err`.
 */
ps_result ps_fail_errno(ps_error *err, const char *what);

/* Fails with PS_ERR_MEMORY and the text "out of memory". */
ps_result ps_fail_memory(ps_error *err);

/* Fails with PS_ERR_CORRUPT, because a saved state is damaged. */
ps_result ps_fail_state(ps_error *err);

#endif
