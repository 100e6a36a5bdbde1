/*
 * plot.h - how even steps are, as curves.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKDEAL_PLOT_H
#define PACKDEAL_PLOT_H

#include "cli/svg.h"
#include "packdeal/batch.h"

/* Draws the steps that were dealt; none comes any more. */
void plot_steps(svg *page, batch *b);

#endif
