/*
 * plan_fit.h - the parts of nnlshp: the fit, and quick plans for the rest.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_PLAN_FIT_H
#define LIB_PLAN_FIT_H

#include "plan.h"

/*
 * Adds strategies for most of the histogram to the plan: the whole parts of
 * the best fractional ones.  `left` becomes what they leave, by the lengths
 * of the histogram.  With `weighted`, residuals are allowed as the options
 * say.  Takes the work done from *work, and no more than that.
 * PS_ERR_MEMORY, PS_ERR_LIMIT.
 */
ps_result ps_plan_fit(ps_plan *plan, const ps_histogram *h,
                      const ps_plan_options *o, bool weighted, double *work,
                      uint64_t *left, ps_error *err);

/*
 * Replaces *best, which may be NULL, with a quick plan for the whole
 * histogram if one has fewer packs.  PS_ERR_MEMORY, PS_ERR_LIMIT.
 */
ps_result ps_plan_quick(ps_plan **best, const ps_histogram *h,
                        const ps_plan_options *o, ps_error *err);

/* The most that each takes, besides the plan, and the plans. */
uint64_t ps_plan_fit_bytes(const ps_plan_size *size);
uint64_t ps_plan_quick_bytes(const ps_plan_size *size);

#endif
