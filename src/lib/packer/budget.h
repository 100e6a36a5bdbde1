/*
 * budget.h - limits on packs besides the capacity.
 *
 * SPDX-License-Identifier: MIT
 *
 * A budget bounds the sum of an integer per-sequence channel over the sequences
 * of a pack, or the sum of their squared lengths (PS_BUDGET_ATTENTION).  The
 * engine chooses packs within the budgets; this file computes how much of each
 * budget a sequence uses.
 */

#ifndef LIB_PACKER_BUDGET_H
#define LIB_PACKER_BUDGET_H

#include "packer/options.h"

/*
 * Sets `budgets` and `n_budgets` of the settings' info from the options, and
 * checks them.  The schema must be valid.  PS_OK, PS_ERR_ARGUMENT.
 */
ps_result ps_budget_find(ps_settings *s, const ps_schema *schema,
                         const ps_packer_options *options, ps_error *err);

/*
 * Maximum number of tokens of one sequence that are within the budgets for
 * attention, at most the capacity.
 */
uint32_t ps_budget_longest(const ps_settings *s);

/*
 * Computes how much of each budget the first `n_tok` tokens of a sequence use,
 * or any piece with as many tokens.  A negative value counts as more than any
 * budget allows.
 */
void ps_budget_uses(const ps_settings *s, const ps_sequence *sequence,
                    uint32_t n_tok, uint64_t uses[PS_MAX_BUDGETS]);

/*
 * Maximum number of tokens, counted from the start of a sequence, that fit a
 * pack in which `used` of the budgets and `n_tok` tokens have already been
 * used.
 */
uint32_t ps_budget_room(const ps_settings *s, const ps_sequence *sequence,
                        const uint64_t used[PS_MAX_BUDGETS], uint32_t n_tok);

/*
 * True if a sequence, or pieces of it, fit an empty pack: no value of a channel
 * exceeds its budget.
 */
bool ps_budget_allows(const ps_settings *s, const ps_sequence *sequence);

/*
 * Returns PS_ERR_RANGE if a channel of a sequence exceeds its budget, otherwise
 * PS_ERR_OVERLONG, with the reason why the sequence does not fit a pack.
 */
ps_result ps_budget_blame(const ps_settings *s, const ps_sequence *sequence,
                          ps_error *err);

#endif
