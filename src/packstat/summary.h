/*
 * summary.h - statistics as text for humans: labelled lines, grouped digits,
 * histograms as bars.  All output fits 80 columns.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_SUMMARY_H
#define PACKSTAT_SUMMARY_H

#include <stdbool.h>
#include <stdio.h>

#include "packstat/figures.h"
#include "packstream.h"

/* Prints a blank line between two summaries. */
void summary_separate(FILE *out, bool *summarised);

/*
 * Print a summary under the heading `name`.  The histograms must be finished.
 * If `read` is false, only the header and totals are known.
 */
void summary_packs(FILE *out, const char *name, const ps_pack_info *info,
                   const ps_totals *t, const pack_figures *found, bool read);
void summary_tokens(FILE *out, const char *name, const ps_schema *schema,
                    const token_figures *found, bool read);

#endif
