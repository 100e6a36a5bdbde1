/*
 * open_bins.h - packs that are still open, shelved by the space left in them.
 *
 * First fit, best fit and worst fit on a histogram are one procedure.  The
 * lengths go from the longest to the shortest.  Equal packs are a group,
 * and all that is done to one of them is done to the group, or to a part of
 * it that is split off.  What makes the algorithms different is which group
 * comes next: a ps_fit.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_PLAN_OPEN_BINS_H
#define LIB_PLAN_OPEN_BINS_H

#include "plan/plan.h"

/* Which of the open packs with room for a length takes it. */
typedef enum ps_fit {
    PS_FIT_FIRST,       /* of all, the one opened first */
    PS_FIT_BEST,        /* of the fullest, the one opened first */
    PS_FIT_BEST_LATEST, /* of the fullest, the one changed last */
    PS_FIT_WORST_LATEST /* of the emptiest, the one changed last */
} ps_fit;

/*
 * Packs the histogram by that rule.  With `repeat` a pack takes as many
 * sequences of a length as it has room for before the next pack is looked
 * for; else it takes one.
 *
 * Time: O(log capacity) for each step; a step completes a length or extends
 * a whole group, so that there are no more steps than lengths in the plan's
 * strategies.  Memory: 52 bytes for each step, and 4 for each token of the
 * capacity, up to 20 for first fit.  PS_ERR_MEMORY, PS_ERR_LIMIT.
 */
ps_result ps_open_bins_pack(ps_plan *plan, const ps_histogram *h,
                            const ps_plan_options *o, ps_fit fit, bool repeat,
                            ps_error *err);

/* The most that it takes for so many sequences, besides the plan. */
uint64_t ps_open_bins_bytes(uint64_t sequences, uint32_t capacity, ps_fit fit);

#endif
