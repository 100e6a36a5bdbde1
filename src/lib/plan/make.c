/*
 * make.c - make a plan with a given algorithm.
 *
 * SPDX-License-Identifier: MIT
 */

#include <float.h>
#include <inttypes.h>

#include "base/error.h"
#include "plan/plan.h"

static ps_planner *const planners[] = {
    [PS_PLAN_NONE] = ps_plan_none,
    [PS_PLAN_GREEDY] = ps_plan_next_fit,
    [PS_PLAN_SORTED] = ps_plan_sorted,
    [PS_PLAN_FFD] = ps_plan_decreasing,
    [PS_PLAN_BFD] = ps_plan_decreasing,
    [PS_PLAN_SPFHP] = ps_plan_decreasing,
    [PS_PLAN_LPFHP] = ps_plan_decreasing,
    [PS_PLAN_NNLSHP] = ps_plan_nnlshp,
    [PS_PLAN_ENNLSHP] = ps_plan_nnlshp,
};

static ps_result check(const ps_histogram *h, ps_algorithm algorithm,
                       const ps_plan_options *o, ps_error *err)
{
    bool weighted = algorithm == PS_PLAN_NNLSHP ||
                    algorithm == PS_PLAN_ENNLSHP;
    size_t n = ps_histogram_size(h);
    uint32_t longest = n == 0 ? 0 : ps_histogram_length(h, n - 1);

    if ((size_t)algorithm >= sizeof planners / sizeof planners[0])
        return ps_fail(err, PS_ERR_ARGUMENT, "plan: unknown algorithm");
    if (o->capacity == 0 || o->capacity > PS_MAX_CAPACITY)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "plan: the capacity must be 1 to %" PRIu32,
                       PS_MAX_CAPACITY);
    if (o->depth == 0)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "plan: the depth must be at least 1");
    if (algorithm == PS_PLAN_SORTED && o->batch == 0)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "plan: the batch must be at least 1");
    /* Written this way to reject NaN. */
    if (weighted && !(o->short_weight > 0 && o->short_weight <= DBL_MAX))
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "plan: the weight of short lengths must be greater than "
                       "0");
    if (longest > o->capacity)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "plan: length %" PRIu32 " exceeds the capacity, "
                       "%" PRIu32,
                       longest, o->capacity);
    return PS_OK;
}

ps_result ps_plan_make(ps_plan **plan, const ps_histogram *h,
                       ps_algorithm algorithm, const ps_plan_options *o,
                       ps_error *err)
{
    ps_plan *p;
    ps_result r = check(h, algorithm, o, err);

    *plan = NULL;
    if (r == PS_OK)
        r = ps_plan_open(&p, err);
    if (r != PS_OK)
        return r;
    if (ps_histogram_size(h) > 0)
        r = planners[algorithm](p, h, algorithm, o, err);
    return ps_plan_keep_better(plan, p, r);
}
