/*
 * recommend.h - a window for a capacity, and the command of packstream that
 * packs with it.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKPLAN_RECOMMEND_H
#define PACKPLAN_RECOMMEND_H

#include "cli/histogram.h"
#include "packplan/conf.h"

/* What part of the bound on the efficiency may be missing. */
#define RECOMMEND_WITHIN 0.0005

/* Efficiencies are fractions; without sequences all is 0. */
typedef struct recommendation {
    const length_counts *lengths;
    uint32_t window;
    double bound;      /* no packs of this capacity are fuller */
    double efficiency; /* that of a stream of these lengths, packed on trial */
} recommendation;

/*
 * Finds the least window with which packstream packs a stream of these lengths
 * to within RECOMMEND_WITHIN of the bound, or one pack; or that which comes
 * nearest.
 * `aligned` has the lengths as they take up a pack.
 * An exit status, after a message if not STATUS_OK.
 */
int recommend(recommendation *r, const conf *c, const length_counts *of,
              const ps_histogram *aligned);

/* Prints one for each capacity, and the commands. */
void recommend_report(const conf *c, const recommendation *of);

#endif
