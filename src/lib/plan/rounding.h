/*
 * rounding.h - from strategies with fractional repeats to a plan.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_PLAN_ROUNDING_H
#define LIB_PLAN_ROUNDING_H

#include "plan/lp_input.h"
#include "plan/plan.h"

/*
 * Repeats each column of the basis as often as the whole part of `used` says
 * and gives its slots sequences: each slot the longest that is left and
 * fits.  Adds the strategies to the plan, and takes what they hold from
 * `left`, the counts by the lengths of the histogram.
 * PS_ERR_MEMORY, PS_ERR_LIMIT.
 */
ps_result ps_round(ps_plan *plan, const ps_histogram *h,
                   const ps_lp_input *input, const ps_basis *basis,
                   const double *used, uint64_t *left, ps_error *err);

/* The most that it takes, besides the plan. */
uint64_t ps_round_bytes(uint32_t n, uint32_t lengths, uint32_t depth);

#endif
