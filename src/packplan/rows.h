/*
 * rows.h - plan the packing of a histogram, with one row per algorithm and
 * depth.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKPLAN_ROWS_H
#define PACKPLAN_ROWS_H

#include <stddef.h>

#include "packplan/conf.h"
#include "packstream.h"

/* Results of an algorithm at a depth.  Ratios are 0 without packs. */
typedef struct row {
    const algorithm *algorithm;
    uint32_t depth; /* limit on the depth; CONF_NO_CAP: none */
    uint64_t packs;
    size_t strategies;  /* distinct packs */
    uint32_t max_depth; /* maximum number of sequences in a pack */
    double efficiency;  /* 0 to 1 */
    double factor;      /* mean sequences per pack */
    double seconds;     /* time for making the plan */
    double bound;       /* lower bound on packs; negative: unknown */
    double overhead;    /* in per cent */
    double speed_up;    /* the factor, less the overhead */
} row;

/* Maximum number of rows. */
#define ROWS_MAX (ALGORITHMS * CONF_LIST)

typedef struct rows {
    size_t n;
    row of[ROWS_MAX];
} rows;

/*
 * Makes and checks all requested plans, with rows of equal depth together.
 * Plans are for the `aligned` lengths, which are rounded up to the alignment;
 * efficiency refers to the `tokens` of the sequences.  Returns an exit status;
 * prints a message on failure.
 */
int rows_make(rows *rs, const conf *c, const ps_histogram *aligned,
              uint64_t tokens);

/*
 * Makes one plan, for the first algorithm and depth selected.  Returns an exit
 * status; prints a message on failure.
 */
int rows_plan(ps_plan **plan, const conf *c, const ps_histogram *h);

#endif
