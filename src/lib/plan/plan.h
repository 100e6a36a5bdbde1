/*
 * plan.h - a plan as it is built, and the algorithms that build one.
 *
 * This is the main header of the room `plan`: packing all at once, from the
 * histogram of the lengths.  A plan is a list of strategies: the lengths
 * of a pack, and how often it is to be made.
 *
 *     plan         the list of strategies, and the check of one
 *     make         a plan by the name of its algorithm: the table of them
 *     baselines    what trainers do without a plan: none, sorted, greedy
 *     decreasing   first, best and worst fit: ffd, bfd, spfhp, lpfhp
 *     nnlshp       nnlshp and ennlshp: a fit, and a plan for what it leaves
 *     nnls         the fit: fractional strategies by the linear relaxation
 *     rounding     from fractional strategies to whole ones
 *     heuristics   the best of some quick plans
 *     repack       better plans by trial: takes packs apart, makes them again
 *     window_plan  for the engine: plans for what a window holds
 *     bound        how few packs are possible
 *     lp_input     a histogram as an instance of the linear program
 *
 * The room uses base, and lp for the linear relaxation.  It has no clock and
 * no random seed but a fixed one: a plan follows from the histogram and the
 * options alone.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_PLAN_PLAN_H
#define LIB_PLAN_PLAN_H

#include "base/histogram.h"
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
 * Ends the making of `made`, which `r` is the result of: keeps the plan with
 * fewer packs in *best, which may be NULL, and frees the other one.  With an
 * error it frees `made`.  Returns `r`.
 */
ps_result ps_plan_keep_better(ps_plan **best, ps_plan *made, ps_result r);

/*
 * An algorithm: fills an empty plan.  ps_plan_make has seen to it that the
 * histogram is not empty, that its lengths are at most o->capacity, and
 * that the options make sense.  PS_ERR_MEMORY, PS_ERR_LIMIT.
 */
typedef ps_result ps_planner(ps_plan *plan, const ps_histogram *h,
                             ps_algorithm algorithm, const ps_plan_options *o,
                             ps_error *err);

ps_planner ps_plan_none;
ps_planner ps_plan_sorted;
ps_planner ps_plan_next_fit;
ps_planner ps_plan_decreasing; /* FFD, BFD, SPFHP, LPFHP */
ps_planner ps_plan_nnlshp;     /* NNLSHP, ENNLSHP */

/*
 * Replaces *best, which may be NULL, with the best of some quick plans for
 * the whole histogram if that has fewer packs.  PS_ERR_MEMORY, PS_ERR_LIMIT.
 */
ps_result ps_plan_quick(ps_plan **best, const ps_histogram *h,
                        const ps_plan_options *o, ps_error *err);

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
uint64_t ps_plan_bytes(uint64_t sequences);
uint64_t ps_plan_decreasing_bytes(const ps_plan_size *size,
                                  ps_algorithm algorithm);
uint64_t ps_plan_quick_bytes(const ps_plan_size *size);
uint64_t ps_plan_nnlshp_bytes(const ps_plan_size *size);

#endif
