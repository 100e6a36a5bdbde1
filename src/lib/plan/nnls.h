/*
 * nnls.h - the fit of nnlshp, and ennlshp with less work.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_PLAN_NNLS_H
#define LIB_PLAN_NNLS_H

#include "plan/plan.h"

/* What a fit leaves, and what it learns, by the lengths of the histogram. */
typedef struct ps_fit_rest {
    uint64_t *left;
    double *price; /* what a length is worth, in packs */
    double bound;  /* packs; no plan has fewer */
} ps_fit_rest;

/*
 * Adds strategies for most of the histogram to the plan: the whole parts of
 * the best fractional ones.  The arrays of *rest are the caller's.  With
 * `weighted`, residuals are allowed as the options say.  Takes the work done
 * from *work, and no more than that.  PS_ERR_MEMORY, PS_ERR_LIMIT.
 */
ps_result ps_plan_fit(ps_plan *plan, const ps_histogram *h,
                      const ps_plan_options *o, bool weighted, double *work,
                      ps_fit_rest *rest, ps_error *err);

/* Work that may be done: additions of the fit, and steps of the repair. */
typedef struct ps_fit_work {
    double fit;
    double repair;
} ps_fit_work;

/*
 * Replaces *best with the plan that ennlshp makes with no more than that work,
 * if it has fewer packs.  Raises *min_packs if the fit proves that every plan
 * has more.  PS_ERR_MEMORY, PS_ERR_LIMIT.
 */
ps_result ps_plan_fit_within(ps_plan **best, const ps_histogram *h,
                             const ps_plan_options *o, ps_fit_work work,
                             double *min_packs, ps_error *err);

/* The most that a fit takes, besides the plan. */
uint64_t ps_plan_fit_bytes(const ps_plan_size *size);

#endif
