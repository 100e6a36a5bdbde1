/*
 * summary.h - what a stream holds, for a human: labelled lines, grouped
 * numbers, histograms drawn as bars.  Everything fits 80 columns.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_SUMMARY_H
#define PACKSTAT_SUMMARY_H

#include <stdbool.h>
#include <stdio.h>

#include "packstat/figures.h"
#include "packstream.h"

/* Leaves a line free between summaries. */
void summary_separate(FILE *out, bool *summarised);

/*
 * Prints a summary headed by `name`; the histograms must be finished.  Packs
 * that were not `read` are known by header and totals alone.
 */
void summary_packs(FILE *out, const char *name, const ps_pack_info *info,
                   const ps_totals *t, const pack_figures *found, bool read);
void summary_tokens(FILE *out, const char *name, const ps_schema *schema,
                    const token_figures *found, bool read);

#endif
