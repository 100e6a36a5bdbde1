/*
 * range.h - a range of records, "A:B", with the meaning of a Python slice.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_RANGE_H
#define CLI_RANGE_H

#include <stdbool.h>
#include <stdint.h>

/* A record number, counted from the start or from the end. */
typedef struct range_bound {
    uint64_t number; /* 0 is the first record; from the end, 1 is the last */
    bool from_end;
} range_bound;

/* Half-open: `end` is excluded. */
typedef struct range {
    range_bound first;
    range_bound end; /* number UINT64_MAX: no limit */
} range;

/* An option_setter for a range: parses "A:B", "A:", ":B" or ":". */
const char *range_parse(void *to, const char *text);

/* True if a bound counts from the end and thus needs the number of records. */
bool range_needs_count(const range *r);

/*
 * Converts both bounds to record numbers from the start, for `count` records.
 * A bound before the first record becomes 0.  A bound past the last record does
 * not change.
 */
void range_settle(range *r, uint64_t count);

#endif
