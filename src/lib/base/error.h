/*
 * error.h - filling a ps_error.
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

/* PS_ERR_IO with errno kept: "what: the words for errno". */
ps_result ps_fail_errno(ps_error *err, const char *what);

/* PS_ERR_MEMORY. */
ps_result ps_fail_memory(ps_error *err);

#endif
