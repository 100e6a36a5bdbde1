/*
 * lpfhp.c - longest pack first: from the longest sequence to the
 * shortest, each goes to the fullest pack that has room for it; best fit on
 * a histogram.
 *
 * With o->distribute a pack takes as many sequences of a length at once as
 * fit.  That is bfd but for the choice among equally full packs: here the
 * one changed last, there the one opened first.  Under a depth cap their
 * numbers of packs may differ, without one they cannot.  Without
 * o->distribute a length opens a pack for each of its sequences that fits
 * nowhere.
 *
 * SPDX-License-Identifier: MIT
 */

#include "plan/open_bins.h"

ps_result ps_plan_lpfhp(ps_plan *plan, const ps_histogram *h,
                        const ps_plan_options *o, ps_error *err)
{
    return ps_open_bins_pack(plan, h, o, PS_FIT_BEST_LATEST, o->distribute,
                             err);
}
