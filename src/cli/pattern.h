/*
 * pattern.h - file names for ranks, such as "out.%d.pks": %d is replaced by the
 * rank, %03d by the rank with at least three digits, and %% by a %.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_PATTERN_H
#define CLI_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Counts the conversions %d and %0Nd.  Returns false if a % is followed by
 * anything else.
 */
bool pattern_places(const char *pattern, unsigned *places);

/*
 * Returns the name for a rank, which the caller frees, or NULL if out of
 * memory.  The pattern must pass pattern_places.
 */
char *pattern_name(const char *pattern, uint32_t rank);

#endif
