/*
 * pattern.h - the names of the ranks' files: "out.%d.pks", in which %d stands
 * for the rank, %03d for one of three digits at least, and %% for a %.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_PATTERN_H
#define CLI_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Counts the places for a rank; false if something else stands behind a %. */
bool pattern_places(const char *pattern, unsigned *places);

/*
 * The name for a rank, to be freed, of a pattern that pattern_places accepts;
 * NULL without memory.
 */
char *pattern_name(const char *pattern, uint32_t rank);

#endif
