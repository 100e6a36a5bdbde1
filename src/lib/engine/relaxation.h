/*
 * relaxation.h - what each length is worth where a demand is to be packed: the
 * dual prices of the linear relaxation (column_gen.h), also for lengths that
 * are not in the demand.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_RELAXATION_H
#define LIB_ENGINE_RELAXATION_H

#include "base/mem_bound.h"
#include "packstream.h"

/* For packs of so many units of length, and so many sequences. */
typedef struct ps_relaxation {
    uint32_t units;
    uint32_t depth;   /* at most the units */
    uint32_t *length; /* those in the demand, */
    double *count;    /* and of each how many */
    double *row;      /* two of a knapsack */
} ps_relaxation;

/* Sets mem->failed without memory. */
void ps_relaxation_init(ps_relaxation *x, uint32_t units, uint32_t depth,
                        ps_mem *mem);
void ps_relaxation_destroy(ps_relaxation *x);

/* The most memory that it takes besides while it solves. */
uint64_t ps_relaxation_solve_bytes(uint32_t units, uint32_t depth);

/* The part of a pack that each has of as many of a length as fit. */
static inline double ps_equal_part(const ps_relaxation *x, uint32_t u)
{
    uint32_t fit = x->units / u;

    return 1.0 / (fit < x->depth ? fit : x->depth);
}

/*
 * Fills price[1..units], from 0 to 1, for demand[1..units], of which some is
 * not 0.  Prices do not fall with the length.  A pack is worth at most one if
 * all its lengths are in the demand, or all but one, or if it has one length
 * many times.
 *
 * Solving ends when the demand is worth the optimum to within `gap` packs,
 * or after about *work additions; *work becomes what it took.  PS_ERR_MEMORY.
 */
ps_result ps_relaxation_solve(ps_relaxation *x, const double *demand,
                              double gap, double *work, double *price,
                              ps_error *err);

#endif
