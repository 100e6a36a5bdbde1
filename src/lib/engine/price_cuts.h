/*
 * price_cuts.h - prices that were the best ones for some demand.
 *
 * What lengths are worth where a demand is to be packed are the dual prices
 * of the linear relaxation (lp/column_gen.h).
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
#include "packstream.h"

/* Rows are of a number for each length in units, from 1 on. */
typedef struct ps_price_cuts {
    uint32_t units;
    uint32_t max_units;
    uint32_t depth; /* at most the units */
    uint32_t n;
    double *rows;    /* the prices of each cut; 0 is that of tokens */
    double *new_row; /* those solved for, to be kept or not */
    uint64_t *used;  /* when each cut was near the highest */
    const ps_kernels *kernels;
    /* For solving. */
    uint32_t *length; /* those in the demand, */
    double *count;    /* and how many of each */
    double *knapsack; /* two rows */
} ps_price_cuts;

/* For packs of at most so many units.  Sets mem->failed without memory. */
void ps_price_cuts_init(ps_price_cuts *cuts, uint32_t max_units,
                        ps_mem *mem);
void ps_price_cuts_destroy(ps_price_cuts *cuts);

/*
 * For packs of so many units and `depth` sequences.  Two cuts are there from
 * the start: whether tokens or sequences fill packs, no pack is worth more
 * than one.
 */
void ps_price_cuts_reset(ps_price_cuts *cuts, uint32_t units,
                         uint32_t depth);

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

/* The number of that cut. */
uint32_t ps_price_cuts_best(const ps_price_cuts *cuts, const double *demand);

/*
 * Fills the new row with prices from 0 to 1 for a demand, of which some is
 * not 0.  Prices do not fall with the length.  A pack is worth at most one if
 * all its lengths are in the demand, or all but one, or if it has one length
 * many times.
 *
 * Solving ends when the demand is worth the optimum to within `gap` packs,
 * or after about *work additions; *work becomes what it took.  PS_ERR_MEMORY.
 */
ps_result ps_price_cuts_solve(ps_price_cuts *cuts, const double *demand,
                              double gap, double *work, ps_error *err);

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
void ps_price_cuts_load(ps_price_cuts *cuts, ps_restorer *restorer);

/* The same for one row, and a number from 0 to `max`. */
void ps_price_row_save(const ps_price_cuts *cuts, const double *row,
                       ps_saver *saver);
void ps_price_row_load(const ps_price_cuts *cuts, double *row,
                       ps_restorer *restorer);
double ps_price_number_load(ps_restorer *restorer, double max);

#endif
