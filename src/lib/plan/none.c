/*
 * none.c - every sequence in a pack of its own: training as it is
 * without packing, with what others are compared.
 *
 * SPDX-License-Identifier: MIT
 */

#include "plan/plan.h"

ps_result ps_plan_none(ps_plan *plan, const ps_histogram *h,
                       const ps_plan_options *o, ps_error *err)
{
    size_t n = ps_histogram_size(h);
    ps_result r = PS_OK;

    (void)o;
    for (size_t i = n; r == PS_OK && i-- > 0;) {
        uint32_t length = ps_histogram_length(h, i);

        r = ps_plan_add(plan, ps_histogram_count(h, i), &length, 1, err);
    }
    return r;
}
