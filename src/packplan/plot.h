/*
 * plot.h - what algorithms make of a histogram, as curves over the depth.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKPLAN_PLOT_H
#define PACKPLAN_PLOT_H

#include "cli/svg.h"
#include "packplan/conf.h"
#include "packplan/rows.h"

/* Draws all rows, which are of the sequences in `h`. */
void plot_rows(svg *page, const conf *c, const ps_histogram *h,
               const rows *rs);

#endif
