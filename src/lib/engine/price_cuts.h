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

#include "base/mem_bound.h"
#include "base/serial.h"
#include "engine/kernels.h"
#include "engine/relaxation.h"

/* Rows are of a number for each length in units, from 1 on. */
typedef struct ps_price_cuts {
    uint32_t units;
    uint32_t n;
    double *rows;    /* the prices of each cut; 0 is that of tokens */
    double *new_row; /* where to write a new cut, to be kept or not */
    uint64_t *used;  /* when each was near the highest */
    const ps_kernels *kernels;
} ps_price_cuts;

/*
 * For packs of so many units and `depth` sequences.  Two cuts are there from
 * the start: whether tokens or sequences fill packs, no pack is worth more
 * than one.  Sets mem->failed without memory.
 */
void ps_price_cuts_init(ps_price_cuts *cuts, uint32_t units, uint32_t depth,
                        ps_mem *mem);
void ps_price_cuts_destroy(ps_price_cuts *cuts);

/* The prices of a cut. */
static inline double *ps_price_cut(const ps_price_cuts *cuts, uint32_t i)
{
    return cuts->rows + i * ((size_t)cuts->units + 1);
}

/* The packs that a demand is worth at some prices, or by the highest cut. */
static inline double ps_price_value(const ps_price_cuts *cuts,
                                    const double *demand, const double *price)
{
    return cuts->kernels->dot(demand + 1, price + 1, cuts->units);
}
double ps_price_cuts_value(const ps_price_cuts *cuts, const double *demand);

/*
 * Keeps the new row, in place of the cut that was used longest ago if need
 * be; unless it gives almost the packs of another cut, for a stream with
 * these counts and their total.  `now` counts as its use.
 */
void ps_price_cuts_keep(ps_price_cuts *cuts, const double *count,
                        double total, uint64_t now);

/*
 * A mean of the cuts that for this demand are no lower than the highest one
 * less this part of it, each weighted by how much it is above that.
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
