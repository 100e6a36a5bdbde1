/*
 * price_cuts.h - prices that were the best ones for some demand.
 *
 * The packs that a demand needs are a convex function of it, and prices that
 * are right for one demand are a cut: a plane that touches this function from
 * below (Kelley 1960).  At any other demand the highest of some cuts is near
 * the function, and its prices are near the right ones.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_PRICE_CUTS_H
#define LIB_ENGINE_PRICE_CUTS_H

#include <stdbool.h>

#include "base/serial.h"
#include "engine/kernels.h"
#include "engine/relaxation.h"

/* Rows are of a number for each length in units, from 1 on. */
typedef struct ps_price_cuts {
    uint32_t units;
    uint32_t n;
    double *row;    /* one for each cut, one more for a new one */
    uint64_t *used; /* when each was near the highest */
    const ps_kernels *kernels;
} ps_price_cuts;

/*
 * For packs of so many units and `depth` sequences.  Two cuts are there from
 * the start: whether tokens or sequences fill packs, no pack is worth more
 * than one.  False without memory; to be closed even then.
 */
bool ps_price_cuts_open(ps_price_cuts *cuts, uint32_t units, uint32_t depth);
void ps_price_cuts_close(ps_price_cuts *cuts);

/* The most memory that they take. */
uint64_t ps_price_cuts_bytes(uint32_t units);

/* The prices of a cut; 0 is that of tokens. */
static inline const double *ps_price_cut(const ps_price_cuts *cuts, uint32_t i)
{
    return cuts->row + i * ((size_t)cuts->units + 1);
}

/* The packs that a demand is worth at some prices, or by the highest cut. */
static inline double ps_price_value(const ps_price_cuts *cuts,
                                    const double *demand, const double *price)
{
    return cuts->kernels->dot(demand + 1, price + 1, cuts->units);
}
double ps_price_cuts_value(const ps_price_cuts *cuts, const double *demand);

/* Where to write the prices of a new cut. */
double *ps_price_cuts_new(ps_price_cuts *cuts);

/*
 * Keeps what was written there, in the place of a cut little used if need be;
 * unless it gives almost the packs of another one, for a stream with these
 * counts, of which the total is given.  `now` is when that is.
 */
void ps_price_cuts_keep(ps_price_cuts *cuts, const double *count,
                        double total, uint64_t now);

/*
 * A mean of the cuts that are below the highest one, for this demand, by no
 * more than this part of it; each has the weight of what is left of that.
 */
void ps_price_cuts_mean(ps_price_cuts *cuts, const double *demand,
                        double part, uint64_t now, double *price);

/* The load fails if packs of one length would be worth more than one. */
void ps_price_cuts_save(const ps_price_cuts *cuts, ps_saver *saver);
void ps_price_cuts_load(ps_price_cuts *cuts, const ps_relaxation *relaxation,
                        ps_restorer *restorer);

/* The same for one row, and a number from 0 to `max`. */
void ps_price_row_save(const double *row, uint32_t units, ps_saver *saver);
void ps_price_row_load(double *row, const ps_relaxation *relaxation,
                       ps_restorer *restorer);
double ps_price_number_load(ps_restorer *restorer, double max);

#endif
