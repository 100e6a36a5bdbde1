/*
 * greedy_basis.h - greedy strategies: a first basis for the relaxation, and
 * quick plans.
 *
 * The longest length that is left gets beside it what is worth most, when a
 * sequence by itself is worth `slot`, a full pack 1, and the rest is for its
 * tokens.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_LP_GREEDY_BASIS_H
#define LIB_LP_GREEDY_BASIS_H

#include "lp/column_gen.h"

/* Adds n columns, a triangular basis, to the list.  False without memory. */
bool ps_greedy_basis(const ps_lp_instance *instance, double slot,
                     ps_entries *list, ps_column *columns);

/*
 * Takes a strategy that is used so many times: n items of the instance, by
 * their places there, which ascend, and how many of each.
 */
typedef ps_result ps_take_strategy(void *context, double times,
                                   const ps_lp_instance *instance,
                                   const ps_entries *items, ps_error *err);

/*
 * Gives strategies for all of the instance, whose counts are whole numbers
 * below 2^53.  PS_ERR_MEMORY, or what `take` gave.
 */
ps_result ps_greedy_strategies(const ps_lp_instance *instance, double slot,
                               ps_take_strategy *take, void *context,
                               ps_error *err);

/* The most that either takes, besides lists of entries and columns. */
uint64_t ps_greedy_bytes(uint32_t n, uint32_t capacity);

#endif
