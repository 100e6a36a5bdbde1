/*
 * plot.h - the page of --plot: a section for each file.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_PLOT_H
#define PACKSTAT_PLOT_H

#include <stdbool.h>

#include "cli/svg.h"
#include "packstat/figures.h"
#include "packstream.h"

/*
 * Draws what the input `name` holds.  All histograms are finished, and `found`
 * of a pack stream has figures to plot.  False without memory.
 */
bool plot_packs(svg *page, const char *name, const ps_pack_info *info,
                const ps_totals *totals, const pack_figures *found);
void plot_tokens(svg *page, const char *name, const ps_schema *schema,
                 const token_figures *found);

#endif
