/*
 * text.h - the pieces that summaries are made of: labelled lines, grouped
 * numbers, histograms drawn as bars.  Everything fits 80 columns.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_TEXT_H
#define PACKSTAT_TEXT_H

#include <stdint.h>
#include <stdio.h>

#include "cli/message.h"
#include "histogram.h"

/* "1,234,567" in `buffer`, which is returned. */
#define TEXT_NUMBER_BYTES 27
const char *text_number(char buffer[TEXT_NUMBER_BYTES], uint64_t number);

/* "  label           TEXT" and a newline. */
void text_line(FILE *out, const char *label, const char *format, ...)
    MESSAGE_PRINTF(3, 4);

/* "  label           1,234 UNIT"; " UNIT" only if it is not NULL. */
void text_count(FILE *out, const char *label, uint64_t number,
                const char *unit);

/*
 * Draws a sorted histogram in at most `max_rows` (up to TEXT_MAX_ROWS) rows
 * under the headings `values` and `counts`: a row for each value if they
 * are few, else equal ranges, else, when most counts would fall into the
 * first range, ranges that grow by a power of two.
 */
#define TEXT_MAX_ROWS 32
void text_histogram(FILE *out, const char *values, const char *counts,
                    const histogram *h, unsigned max_rows);

#endif
