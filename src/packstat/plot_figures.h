/*
 * plot_figures.h - what --plot draws besides the other figures of a pack
 * stream.
 *
 * Memory is fixed, however many packs there are: single ones are kept of the
 * beginning alone.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_PLOT_FIGURES_H
#define PACKSTAT_PLOT_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/chart.h"
#include "packstream.h"

/* The first packs, drawn one by one: sequences and padding as parts of a
   column. */
#define PLOT_PACKS 200
#define PLOT_PARTS 14000
#define PLOT_COLUMN 512 /* how high a column is, in units of its own */
#define PLOT_PADDING 4  /* as many shades for sequences, and one behind them */

typedef struct plot_part {
    uint16_t from; /* from the foot of the column */
    uint16_t to;
    uint8_t pack;
    uint8_t shade; /* of a sequence, in turn; or PLOT_PADDING */
} plot_part;

/* All zeros but max_parts, at most PLOT_PARTS, is the start. */
typedef struct plot_figures {
    chart_bins bins;              /* of packs: their tokens */
    uint64_t empty[CHART_POWERS]; /* packs by places without a token */
    uint64_t full;                /* packs that have none */
    uint32_t stream;              /* that is being read, */
    uint64_t greatest;            /* and the greatest id in it */
    uint64_t displaced[CHART_POWERS]; /* pieces by displacement */
    uint64_t displacement;            /* the greatest */
    unsigned n_packs;                 /* whose parts are kept */
    unsigned n_parts;
    unsigned max_parts;
    bool has_more; /* packs, whose parts are not kept */
    plot_part parts[PLOT_PARTS];
} plot_figures;

/* Takes the next pack. */
void plot_figures_add(plot_figures *p, const ps_pack_info *info,
                      const ps_pack *pack);

#endif
