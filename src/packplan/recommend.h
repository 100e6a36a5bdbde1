/*
 * recommend.h - find a window for a capacity, and print the packstream command
 * that uses it.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKPLAN_RECOMMEND_H
#define PACKPLAN_RECOMMEND_H

#include "files/histogram.h"
#include "packplan/conf.h"

/* Accepted distance from the bound, as a fraction of its efficiency. */
#define RECOMMEND_WITHIN 0.0005

/* Efficiencies are fractions from 0 to 1; all are 0 without sequences. */
typedef struct recommendation {
    const length_counts *lengths;
    uint32_t window;   /* in sequences */
    double bound;      /* upper bound on the efficiency at this capacity */
    double efficiency; /* efficiency of the trial with `window` */
} recommendation;

/*
 * Finds the smallest window with which packstream packs a stream of these
 * lengths to within RECOMMEND_WITHIN of the bound, or one pack.  If no window
 * does, chooses the best one.  `aligned` has the lengths rounded up to the
 * alignment.
 * Returns an exit status; prints a message on failure.
 */
int recommend(recommendation *r, const conf *c, const length_counts *of,
              const ps_histogram *aligned);

/* Prints the recommendation and the command for each capacity. */
void recommend_report(const conf *c, const recommendation *of);

#endif
