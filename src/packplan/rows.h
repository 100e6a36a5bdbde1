/*
 * rows.h - what algorithms make of a histogram, a row for each.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKPLAN_ROWS_H
#define PACKPLAN_ROWS_H

#include <stddef.h>

#include "packplan/conf.h"
#include "packstream.h"

/* An algorithm at a depth.  Ratios are 0 where there are no packs. */
typedef struct row {
    const algorithm *algorithm;
    uint32_t depth; /* CONF_NO_CAP: none */
    uint64_t packs;
    size_t strategies;
    uint32_t max_depth;
    double efficiency; /* a fraction */
    double factor;     /* sequences in a pack */
    double seconds;
    double bound;    /* no plan has fewer packs; below 0: not known */
    double overhead; /* per cent */
    double speed_up; /* the factor less the overhead */
} row;

/* As many rows as there can be. */
#define ROWS_MAX (ALGORITHMS * CONF_LIST)

typedef struct rows {
    size_t n;
    row of[ROWS_MAX];
} rows;

/*
 * Makes and checks all plans that are asked for; those of equal depth stand
 * together.  Plans are for `aligned`, what the sequences take up in packs;
 * efficiency is that of their `tokens`.  An exit status, after a message if
 * not STATUS_OK.
 */
int rows_make(rows *rs, const conf *c, const ps_histogram *aligned,
              uint64_t tokens);

/* One plan, for the first of the algorithms and depths. */
int rows_plan(ps_plan **plan, const conf *c, const ps_histogram *h);

#endif
