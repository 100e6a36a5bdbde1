/*
 * nnls.h - the fit used by nnlshp and, with less work, by ennlshp for windows.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_PLAN_NNLS_H
#define LIB_PLAN_NNLS_H

#include "plan/plan.h"

/* Results of a fit, indexed by the lengths of the histogram. */
typedef struct ps_fit_rest {
    uint64_t *left; /* sequences without a pack */
    double *price;  /* value of each length, packs */
    double bound;   /* lower bound for any plan, packs */
} ps_fit_rest;

/*
 * Adds strategies for most of the histogram to the plan: the integer parts of
 * the best fractional repeat counts.  The caller provides the arrays of *rest.
 * `weighted` allows residuals, with the weights in the options.  Deducts the
 * work done from *work and stops when none is left.  PS_OK, PS_ERR_MEMORY,
 * PS_ERR_LIMIT.
 */
ps_result ps_plan_fit(ps_plan *plan, const ps_histogram *h,
                      const ps_plan_options *o, bool weighted, double *work,
                      ps_fit_rest *rest, ps_error *err);

/* Work limits: additions of the fit, and steps of the repair. */
typedef struct ps_fit_work {
    double fit;    /* additions */
    double repair; /* steps */
} ps_fit_work;

/*
 * Replaces *best with the plan of ennlshp within `work` if that plan has fewer
 * packs.  Raises *min_packs if the fit proves a higher bound.  PS_OK,
 * PS_ERR_MEMORY, PS_ERR_LIMIT.
 */
ps_result ps_plan_fit_within(ps_plan **best, const ps_histogram *h,
                             const ps_plan_options *o, ps_fit_work work,
                             double *min_packs, ps_error *err);

/* Upper bound on the memory of a fit, in bytes, without the plan. */
uint64_t ps_plan_fit_bytes(const ps_plan_size *size);

#endif
