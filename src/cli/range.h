/*
 * range.h - a range of records, "A:B", as a slice in Python has it.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_RANGE_H
#define CLI_RANGE_H

#include <stdbool.h>
#include <stdint.h>

/* A bound: a number from the beginning, or back from the end. */
typedef struct range_bound {
    uint64_t number;
    bool from_end;
} range_bound;

/* From `first` up to, but without, `end`. */
typedef struct range {
    range_bound first;
    range_bound end; /* UINT64_MAX: all that there is */
} range;

/* An option_setter of a range: reads "A:B", "A:", ":B" or ":". */
const char *range_parse(void *to, const char *text);

/* True if a bound is back from the end: it takes the count of all. */
bool range_needs_count(const range *r);

/*
 * Makes both bounds numbers from the beginning, of `count` records.  A bound
 * before the first record becomes 0; one behind the last stays.
 */
void range_settle(range *r, uint64_t count);

#endif
