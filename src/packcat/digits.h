/*
 * digits.h - integers as decimal text, quickly.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKCAT_DIGITS_H
#define PACKCAT_DIGITS_H

#include <stdint.h>

/* The most bytes that one call writes: a sign and 20 digits. */
#define DIGITS_MAX 21

/* Writes `value` at `at`, without a final NUL, and returns the next place. */
char *digits_unsigned(char *at, uint64_t value);
char *digits_signed(char *at, int64_t value);

#endif
