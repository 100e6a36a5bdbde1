/*
 * lists.h - option values that are lists or fractions.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKPLAN_LISTS_H
#define PACKPLAN_LISTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Copies the next entry of a comma-separated list to `entry` and moves on;
 * false at the end, and for an entry that is empty or does not fit.
 * `*list` is NULL after the last one.
 */
bool list_next(const char **list, char *entry, size_t size);

/* Numbers, and UINT32_MAX for the word `unlimited` unless that is NULL. */
bool list_numbers(const char *list, uint32_t max, const char *unlimited,
                  uint32_t *to, unsigned room, unsigned *n);

/* Decimal fractions such as 4.25. */
bool list_decimals(const char *list, double *to, unsigned room, unsigned *n);

/* Digits with at most one point among or after them; no sign, no exponent. */
bool decimal_parse(const char *text, double *to);

#endif
