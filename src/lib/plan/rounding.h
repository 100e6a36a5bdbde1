/*
 * rounding.h - convert strategies with fractional repeat counts to a plan.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_PLAN_ROUNDING_H
#define LIB_PLAN_ROUNDING_H

#include "plan/lp_input.h"
#include "plan/plan.h"

/*
 * Repeats each column of the basis by the integer part of its count in `used`,
 * and assigns to each slot of the column the longest remaining sequence that
 * fits.  Adds the strategies to the plan and deducts their sequences from
 * `left`, which is indexed by the lengths of the histogram.
 * PS_OK, PS_ERR_MEMORY, PS_ERR_LIMIT.
 */
ps_result ps_round(ps_plan *plan, const ps_histogram *h,
                   const ps_lp_input *input, const ps_basis *basis,
                   const double *used, uint64_t *left, ps_error *err);

/* Upper bound on the memory of ps_round, in bytes, without the plan. */
uint64_t ps_round_bytes(uint32_t n, uint32_t lengths, uint32_t depth);

#endif
