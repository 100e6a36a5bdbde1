/*
 * order_stats.h - whether the lengths of sequences hang on where they are.
 *
 * Two figures, both near 0 where lengths are well mixed: n packs in random
 * order give about 1 / sqrt(n) either way.  Taken in one pass and in
 * constant memory; a file of several streams counts as one.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_ORDER_STATS_H
#define PACKSTAT_ORDER_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "packstream.h"

/* All zeros is the start. */
typedef struct order {
    double packs;
    double sequences;
    /* Means, and sums of squares and products about them, of the places
       (which pack) and the lengths of all sequences. */
    double mean_place;
    double mean_length;
    double places_squared;
    double lengths_squared;
    double products;
    /* The means of packs: less the first, so that sums stay small. */
    double first;
    double last;
    double sum;
    double squared;
    double lagged; /* of products of neighbours */
} order;

/* Takes the next pack. */
void order_add(order *o, const ps_pack_info *info, const ps_pack *pack);

/*
 * Pearson's correlation of the length of a sequence with the number of the
 * pack it is in.  False if there is none: of fewer than two packs, or if all
 * lengths are equal.
 */
bool order_by_place(const order *o, double *correlation);

/*
 * Autocorrelation, at a lag of one, of the mean length in a pack: runs of
 * like lengths show in it.  False if there is none: of fewer than two packs,
 * or if all means are equal.
 */
bool order_by_neighbour(const order *o, double *correlation);

#endif
