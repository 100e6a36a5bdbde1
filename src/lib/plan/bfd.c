/*
 * bfd.c - best fit, decreasing: from the longest sequence to the
 * shortest, each goes to the fullest pack that has room for it; of equally
 * full ones to the one that was opened first.
 *
 * Gives the packs that the textbook's procedure gives on the sequences one
 * by one.  That a pack takes several sequences of a length at once is no
 * departure from it: the pack that has just been the fullest is so even
 * more after it has taken one.
 *
 * SPDX-License-Identifier: MIT
 */

#include "plan/open_bins.h"

ps_result ps_plan_bfd(ps_plan *plan, const ps_histogram *h,
                      const ps_plan_options *o, ps_error *err)
{
    return ps_open_bins_pack(plan, h, o, PS_FIT_BEST, true, err);
}
