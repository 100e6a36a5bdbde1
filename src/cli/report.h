/*
 * report.h - totals as JSON, the same keys from packstream and packstat; and
 * numbers and names for reading.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "packstream.h"

/*
 * The start of an object on a line: sequences, tokens, packs, capacity, depth,
 * max_depth, efficiency (a fraction), packing_factor, lower_bound, padding,
 * max_displacement, rejected, then the rest of ps_totals by its own names.
 * A depth that is not known and ratios without packs are null.  `file` adds a
 * "file" key unless NULL.  The caller adds what it alone knows, and "}\n".
 */
void report_json_begin(FILE *out, const char *file,
                       const ps_pack_info *info, const ps_totals *t);

/*
 * All of the object, of a run that packed, which also knows max_delay, and, for
 * each ps_reject, rejected_REASON_sequences and rejected_REASON_tokens.
 */
void report_json_packing(FILE *out, const ps_pack_info *info,
                         const ps_totals *totals,
                         const ps_rejected rejected[PS_REJECTS],
                         uint64_t max_delay);

/* One more key; null for a ratio that does not exist. */
void report_json_ratio(FILE *out, const char *key, bool exists, double value);

/* tokens / (packs * capacity); 0 without packs. */
double report_efficiency(const ps_pack_info *info, const ps_totals *totals);

/*
 * The whole packs that a bound of ps_plan_bound asks for: a sum of fractions,
 * of which a little may be rounding.  0 only for 0.
 */
uint64_t report_bound_packs(double bound);

/*
 * A JSON string with quotes, escaped.  Each byte that is no part of
 * well-formed UTF-8 becomes U+FFFD.
 */
void report_json_string(FILE *out, const char *text);

/*
 * How many bytes the character beyond ASCII has that `text` begins with; 0 if
 * it is no well-formed UTF-8.
 */
size_t report_utf8_bytes(const char *text);

/* "1,234,567" in `buffer`, which is returned. */
#define REPORT_DIGITS 27
const char *report_digits(char buffer[REPORT_DIGITS], uint64_t number);

/* "1,234.57", likewise, for a sum divided by a count that is not 0. */
#define REPORT_MEAN (REPORT_DIGITS + 3)
const char *report_mean(char buffer[REPORT_MEAN], uint64_t sum, uint64_t n);

#endif
