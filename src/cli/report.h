/*
 * report.h - totals as JSON, with the same keys in packstream and packstat;
 * formatting of numbers and strings.
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
 * Prints the start of a JSON object: sequences, tokens, packs, capacity, depth,
 * align (if not 1), share (if true), max_depth, efficiency (0 to 1),
 * packing_factor, lower_bound, padding (tokens), max_displacement, rejected,
 * then the other members of ps_totals under their own names.  Unknown values,
 * and ratios if there are no packs, are null. "file" comes first if `file` is
 * not NULL.  The caller appends its own keys and "}\n".
 */
void report_json_begin(FILE *out, const char *file,
                       const ps_pack_info *info, const ps_totals *t);

/*
 * Prints the whole object for a packing run: the keys above, max_delay,
 * rejected_REASON_sequences and rejected_REASON_tokens for each ps_reject, and
 * groups and overlong_groups unless `groups` is NULL.
 */
void report_json_packing(FILE *out, const ps_pack_info *info,
                         const ps_totals *totals,
                         const ps_rejected rejected[PS_REJECTS],
                         uint64_t max_delay, const ps_groups *groups);

/* Name of a budget: its channel, or "attention". */
const char *report_budget(const ps_pack_info *info, uint32_t budget);

/* Appends a key with the ratio `value`, or with null if not `exists`. */
void report_json_ratio(FILE *out, const char *key, bool exists, double value);

/* tokens / (packs * capacity), 0 to 1; 0 without packs. */
double report_efficiency(const ps_pack_info *info, const ps_totals *totals);

/*
 * Rounds a bound of ps_plan_bound up to whole packs, with a tolerance for the
 * rounding error of its sum of fractions.  Returns 0 only if the bound is 0.
 */
uint64_t report_bound_packs(double bound);

/*
 * Prints a quoted and escaped JSON string.  Each byte outside well-formed UTF-8
 * becomes U+FFFD.
 */
void report_json_string(FILE *out, const char *text);

/*
 * Prints where a sequence is: id, stream, pack, slot, start in the row, tokens,
 * offset in the whole sequence, and file, either separated by spaces or, if
 * `json` is set, as members of a JSON object, without braces.  `file` is NULL
 * or "-" for stdin.  Prints no line feed.
 */
void report_location(FILE *out, bool json, const ps_location *at,
                     uint32_t stream, const char *file);

/*
 * Length in bytes of the multibyte UTF-8 character at `text`; 0 if it is ASCII
 * or malformed.
 */
size_t report_utf8_bytes(const char *text);

/* Formats "1,234,567" in `buffer` and returns it. */
#define REPORT_DIGITS 27
const char *report_digits(char buffer[REPORT_DIGITS], uint64_t number);

/*
 * Formats the mean sum / n as "1,234.57" in `buffer` and returns it.  `n` must
 * not be 0.
 */
#define REPORT_MEAN (REPORT_DIGITS + 3)
const char *report_mean(char buffer[REPORT_MEAN], uint64_t sum, uint64_t n);

#endif
