/*
 * greedy_basis.h - greedy strategies: a first basis for the relaxation, and
 * fast plans.
 *
 * SPDX-License-Identifier: MIT
 *
 * Each strategy combines the longest remaining length with the most valuable
 * others that fit.  A full pack is worth 1: each sequence contributes `slot`,
 * and the rest of the value is divided among the tokens.
 */

#ifndef LIB_LP_GREEDY_BASIS_H
#define LIB_LP_GREEDY_BASIS_H

#include "lp/column_gen.h"

/*
 * Appends n columns, a triangular basis, to the list.  False if out of memory.
 */
bool ps_greedy_basis(const ps_lp_instance *instance, double slot,
                     ps_entries *list, ps_column *columns);

/*
 * Receives a strategy with its repeat count: indexes of lengths in the
 * instance, ascending, and the number of sequences of each.
 */
typedef ps_result ps_take_strategy(void *context, double times,
                                   const ps_lp_instance *instance,
                                   const ps_entries *items, ps_error *err);

/*
 * Generates strategies for the whole instance, whose counts must be integers
 * below 2^53.  PS_OK, PS_ERR_MEMORY, or the result of `take`.
 */
ps_result ps_greedy_strategies(const ps_lp_instance *instance, double slot,
                               ps_take_strategy *take, void *context,
                               ps_error *err);

/*
 * Upper bound on the memory of either function, in bytes, excluding lists of
 * entries and columns.
 */
uint64_t ps_greedy_bytes(uint32_t n, uint32_t capacity);

#endif
