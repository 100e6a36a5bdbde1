/*
 * plan.h - a plan as it is built, and the algorithms that build one.
 *
 * A plan is a list of strategies: how often a pack of such and such lengths
 * is to be made.  The lengths of all strategies lie in one array, so that
 * a plan of thousands of strategies is a handful of allocations.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_PLAN_PLAN_H
#define LIB_PLAN_PLAN_H

#include "packstream.h"

/* An empty plan.  PS_ERR_MEMORY. */
ps_result ps_plan_open(ps_plan **plan, ps_error *err);

/*
 * Adds `count` >= 1 packs of the `n` >= 1 lengths, in any order; an equal
 * strategy that is there already stays apart.  PS_ERR_MEMORY, PS_ERR_LIMIT.
 */
ps_result ps_plan_add(ps_plan *plan, uint64_t count, const uint32_t *lengths,
                      uint32_t n, ps_error *err);

/*
 * As ps_plan_add, but the caller writes the lengths, in ascending order,
 * to *lengths before the next call.
 */
ps_result ps_plan_reserve(ps_plan *plan, uint64_t count, uint32_t n,
                          uint32_t **lengths, ps_error *err);

/*
 * Makes one strategy of equal ones, and puts all in order: by their longest
 * length, then the next, and so on, the longest first.  PS_ERR_MEMORY.
 */
ps_result ps_plan_merge(ps_plan *plan, ps_error *err);

/*
 * Says that the strategies fill no more than `packs` packs, though there
 * are more of them: for sequences in rows that are not all of full length.
 */
void ps_plan_set_packs(ps_plan *plan, uint64_t packs);

/*
 * An algorithm: fills an empty plan.  ps_plan_make has seen to it that the
 * histogram is not empty, that its lengths are at most o->capacity, and
 * that the options make sense.  PS_ERR_MEMORY, PS_ERR_LIMIT.
 */
typedef ps_result ps_planner(ps_plan *plan, const ps_histogram *h,
                             const ps_plan_options *o, ps_error *err);

ps_planner ps_plan_none;
ps_planner ps_plan_greedy;
ps_planner ps_plan_sorted;
ps_planner ps_plan_ffd;
ps_planner ps_plan_bfd;
ps_planner ps_plan_spfhp;
ps_planner ps_plan_lpfhp;
ps_planner ps_plan_nnlshp;
ps_planner ps_plan_ennlshp;

/* ---- What plans take, so that it can be told in advance ---- */

/* A histogram of so many sequences at most, of different lengths. */
typedef struct ps_plan_size {
    uint64_t sequences;
    uint32_t lengths;
    uint32_t capacity;
    uint32_t depth;
} ps_plan_size;

/* Of a strategy while ps_plan_merge puts them in order, twice. */
#define PS_MERGED_BYTES 48

/* The most that each takes, and what is used on the way to it. */
uint64_t ps_histogram_bytes(uint32_t lengths);
uint64_t ps_plan_bytes(uint64_t sequences);
uint64_t ps_plan_spfhp_bytes(const ps_plan_size *size);
uint64_t ps_plan_nnlshp_bytes(const ps_plan_size *size);
uint64_t ps_plan_bound_bytes(const ps_plan_size *size);

#endif
