/*
 * range.h - a range of records, "A:B", with the meaning of a Python slice.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_RANGE_H
#define CLI_RANGE_H

#include <stdbool.h>
#include <stdint.h>

/* A bound: a record number from 0, or counted back from the end. */
typedef struct range_bound {
    uint64_t number; /* from the start: from 0; from the end: from 1 */
    bool from_end;
} range_bound;

/* Half-open: `end` is excluded. */
typedef struct range {
    range_bound first;
    range_bound end; /* number UINT64_MAX: no limit */
} range;

/* An option_setter for a range: parses "A:B", "A:", ":B" or ":". */
const char *range_parse(void *to, const char *text);

/* True if a bound counts from the end, so the number of records is needed. */
bool range_needs_count(const range *r);

/*
 * Converts both bounds to record numbers from the start, for `count` records.
 * A bound before the first record becomes 0; one past the last is unchanged.
 */
void range_settle(range *r, uint64_t count);

#endif
