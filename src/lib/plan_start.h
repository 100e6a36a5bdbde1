/*
 * plan_start.h - strategies by greed: a first basis for the relaxation, and
 * quick plans.
 *
 * The longest length that is left gets beside it what is worth most, when a
 * sequence by itself is worth `slot`, a full pack 1, and the rest is for its
 * tokens.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_PLAN_START_H
#define LIB_PLAN_START_H

#include "plan.h"
#include "plan_lp.h"

/* Adds n columns, a triangular basis, to the list.  False without memory. */
bool ps_start(const ps_stock *stock, double slot, ps_entries *list,
              ps_column *columns);

/*
 * Adds strategies for all of the stock to a plan.  Its counts are whole
 * numbers below 2^53.  PS_ERR_MEMORY, PS_ERR_LIMIT.
 */
ps_result ps_plan_greed(ps_plan *plan, const ps_stock *stock, double slot,
                        ps_error *err);

/* The most that ps_start takes, besides its list and columns. */
uint64_t ps_start_bytes(uint32_t n, uint32_t capacity);

#endif
