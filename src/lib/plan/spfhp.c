/*
 * spfhp.c - shortest pack first: from the longest sequence to the
 * shortest, each goes to the pack with the most room; worst fit on a
 * histogram.
 *
 * A group of packs takes one sequence each and is then looked at anew.
 * Packs that a length has opened take no second sequence of that length:
 * there are as many of them as there are sequences.
 *
 * SPDX-License-Identifier: MIT
 */

#include "base/mem_bound.h"
#include "plan/open_bins.h"

uint64_t ps_plan_spfhp_bytes(const ps_plan_size *size)
{
    return ps_mem_sum(ps_plan_bytes(size->sequences),
                      ps_open_bins_bytes(size->sequences, size->capacity,
                                         PS_FIT_WORST_LATEST));
}

ps_result ps_plan_spfhp(ps_plan *plan, const ps_histogram *h,
                        const ps_plan_options *o, ps_error *err)
{
    return ps_open_bins_pack(plan, h, o, PS_FIT_WORST_LATEST, false, err);
}
