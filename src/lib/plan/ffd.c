/*
 * ffd.c - first fit, decreasing: from the longest sequence to the
 * shortest, each goes to the first of the packs in the order of their
 * opening that has room for it.
 *
 * Gives the packs that the textbook's procedure gives on the sequences one
 * by one, at a cost that depends on the number of lengths.
 *
 * SPDX-License-Identifier: MIT
 */

#include "plan/open_bins.h"

ps_result ps_plan_ffd(ps_plan *plan, const ps_histogram *h,
                      const ps_plan_options *o, ps_error *err)
{
    return ps_open_bins_pack(plan, h, o, PS_FIT_FIRST, true, err);
}
