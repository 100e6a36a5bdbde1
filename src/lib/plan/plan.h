/*
 * plan.h - plans, and the algorithms that make them.
 *
 * SPDX-License-Identifier: MIT
 *
 * Main header of module plan: packing all sequences at once, from the histogram
 * of their lengths.  A plan is a list of strategies: the lengths of a pack and
 * the number of such packs.
 *
 *   plan         list of strategies, and its check
 *   make         make a plan with a given algorithm
 *   baselines    methods of trainers without a plan: none, sorted, greedy
 *   decreasing   first, best and worst fit: ffd, bfd, spfhp, lpfhp
 *   nnlshp       nnlshp and ennlshp: a fit, and a plan for the remainder
 *   nnls         the fit: fractional strategies by the LP relaxation
 *   rounding     fractional strategies to integers
 *   heuristics   the best of several fast plans
 *   repack       local search: take packs apart and make them again
 *   window_plan  plans for the contents of an engine's window
 *   bound        lower bound on the number of packs
 *   bound_uses   the same with several limits on a pack
 *   lp_input     a histogram as an instance of the relaxation
 *
 * The module uses base, and lp for the LP relaxation.  It uses no clock and
 * only fixed random seeds: a plan depends on the histogram and the options
 * alone.
 */

#ifndef LIB_PLAN_PLAN_H
#define LIB_PLAN_PLAN_H

#include "base/histogram.h"
#include "packstream.h"

/* Creates an empty plan.  PS_OK, PS_ERR_MEMORY. */
ps_result ps_plan_open(ps_plan **plan, ps_error *err);

/*
 * Adds `count` >= 1 packs with the `n` >= 1 lengths, in any order.  Equal
 * strategies are not merged.  PS_OK, PS_ERR_MEMORY, PS_ERR_LIMIT.
 */
ps_result ps_plan_add(ps_plan *plan, uint64_t count, const uint32_t *lengths,
                      uint32_t n, ps_error *err);

/*
 * Like ps_plan_add, but the caller writes the lengths, in ascending order, to
 * *lengths before the next call.
 */
ps_result ps_plan_reserve(ps_plan *plan, uint64_t count, uint32_t n,
                          uint32_t **lengths, ps_error *err);

/*
 * Merges equal strategies and sorts all by longest length, then the next and so
 * on, in descending order.  PS_OK, PS_ERR_MEMORY.
 */
ps_result ps_plan_merge(ps_plan *plan, ps_error *err);

/*
 * Overrides the number of packs with a lower one, for sequences in rows that
 * are shorter than the capacity.
 */
void ps_plan_set_packs(ps_plan *plan, uint64_t packs);

/*
 * Finishes making `made` with result `r`: keeps the plan with fewer packs in
 * *best, which may be NULL, and frees the other plan.  If `r` is an error,
 * frees `made`.  Returns `r`.
 */
ps_result ps_plan_keep_better(ps_plan **best, ps_plan *made, ps_result r);

/*
 * An algorithm, which fills an empty plan.  ps_plan_make has checked that the
 * histogram is not empty, that lengths are at most o->capacity, and that the
 * options are valid.  PS_OK, PS_ERR_MEMORY, PS_ERR_LIMIT.
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
 * Replaces *best, which may be NULL, with the best of several fast plans for
 * the whole histogram if that plan has fewer packs.  PS_OK, PS_ERR_MEMORY,
 * PS_ERR_LIMIT.
 */
ps_result ps_plan_quick(ps_plan **best, const ps_histogram *h,
                        const ps_plan_options *o, ps_error *err);

/* ---- Memory bounds ---- */

/* Limits of a histogram and of the options. */
typedef struct ps_plan_size {
    uint64_t sequences; /* maximum number of sequences */
    uint32_t lengths;   /* maximum number of distinct lengths */
    uint32_t capacity;  /* tokens */
    uint32_t depth;     /* maximum number of sequences per pack */
} ps_plan_size;

/* Temporary memory of ps_plan_merge, in bytes per strategy: two copies. */
#define PS_MERGED_BYTES 48

/*
 * Upper bounds on memory, in bytes: of a plan, and of each algorithm with its
 * plan and temporary memory.
 */
uint64_t ps_plan_bytes(uint64_t sequences);
uint64_t ps_plan_decreasing_bytes(const ps_plan_size *size,
                                  ps_algorithm algorithm);
uint64_t ps_plan_quick_bytes(const ps_plan_size *size);
uint64_t ps_plan_nnlshp_bytes(const ps_plan_size *size);

#endif
