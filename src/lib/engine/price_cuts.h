/*
 * price_cuts.h - dual prices that were optimal for some demand.
 *
 * The prices of lengths for a demand are the dual prices of the LP relaxation
 * (lp/column_gen.h).
 *
 * The number of packs that a demand needs is a convex function of the demand,
 * and optimal prices for one demand are a cut: a plane that touches this
 * function from below (Kelley 1960).  For another demand, the highest of
 * several cuts approximates the function, and its prices approximate the
 * optimal prices.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_PRICE_CUTS_H
#define LIB_ENGINE_PRICE_CUTS_H

#include "base/mem_bound.h"
#include "base/serial.h"
#include "engine/kernels.h"
#include "packstream.h"

/* A row has a number for each length in units, starting at index 1. */
typedef struct ps_price_cuts {
    uint32_t units;
    uint32_t max_units;
    uint32_t depth; /* sequences per pack, at most `units` */
    uint32_t n;
    double *rows;    /* prices of each cut; cut 0 is proportional to length */
    double *new_row; /* prices just solved for, not kept yet */
    uint64_t *used;  /* arrivals when each cut was last near the highest */
    const ps_kernels *kernels;
    /* Scratch for solving. */
    uint32_t *length; /* lengths in the demand */
    double *count;    /* sequences of each */
    double *knapsack; /* two rows of a table */
} ps_price_cuts;

/* For packs of at most max_units units.  Sets mem->failed if out of memory. */
void ps_price_cuts_init(ps_price_cuts *cuts, uint32_t max_units,
                        ps_mem *mem);
void ps_price_cuts_destroy(ps_price_cuts *cuts);

/*
 * Starts over for packs of `units` units and `depth` sequences, with two cuts:
 * prices in proportion to length, and equal prices of 1 / depth.
 */
void ps_price_cuts_reset(ps_price_cuts *cuts, uint32_t units,
                         uint32_t depth);

/* Prices of cut `i`. */
static inline double *ps_price_cut(const ps_price_cuts *cuts, uint32_t i)
{
    return cuts->rows + i * ((size_t)cuts->units + 1);
}

/* Value of a demand in packs, at given prices or by the highest cut. */
static inline double ps_price_value(const ps_price_cuts *cuts,
                                    const double *demand, const double *price)
{
    return cuts->kernels->dot(demand + 1, price + 1, cuts->units);
}
double ps_price_cuts_value(const ps_price_cuts *cuts, const double *demand);

/* Index of the highest cut. */
uint32_t ps_price_cuts_best(const ps_price_cuts *cuts, const double *demand);

/*
 * Sets new_row to prices, from 0 to 1, for a demand that is not all 0.  Prices
 * never decrease with the length.  A pack is worth at most 1 if at most one of
 * its lengths is not in the demand, or if all its lengths are equal.
 *
 * Stops when the demand's value is within `gap` packs of the optimum, or after
 * about *work additions.  Sets *work to the additions done.  PS_OK,
 * PS_ERR_MEMORY.
 */
ps_result ps_price_cuts_solve(ps_price_cuts *cuts, const double *demand,
                              double gap, double *work, ps_error *err);

/*
 * Keeps new_row as a cut, used at `now`.  If there is no space, replaces the
 * least recently used cut.  Does nothing if new_row differs little from another
 * cut for a stream with these counts, whose sum is `total`.
 */
void ps_price_cuts_keep(ps_price_cuts *cuts, const double *count,
                        double total, uint64_t now);

/*
 * Sets `price` to a weighted mean of the cuts whose value for this demand is
 * within the fraction `part` of the highest.  The weight is the distance from
 * that limit.
 */
void ps_price_cuts_mean(ps_price_cuts *cuts, const double *demand,
                        double part, uint64_t now, double *price);

/* Loading fails if a pack of equal lengths would be worth more than 1. */
void ps_price_cuts_save(const ps_price_cuts *cuts, ps_saver *saver);
void ps_price_cuts_load(ps_price_cuts *cuts, ps_restorer *restorer);

/* Save and load one row; load a number from 0 to `max`. */
void ps_price_row_save(const ps_price_cuts *cuts, const double *row,
                       ps_saver *saver);
void ps_price_row_load(const ps_price_cuts *cuts, double *row,
                       ps_restorer *restorer);
double ps_price_number_load(ps_restorer *restorer, double max);

#endif
