/*
 * policy.c - the policies by number and name.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine/policy.h"

static const struct {
    const char *name;
    const ps_policy_calls *calls;
} policies[] = {
    [PS_POLICY_AUTO] = {"auto", &ps_policy_auto_calls},
    [PS_POLICY_SPFHP] = {"spfhp", &ps_policy_plan_calls},
    [PS_POLICY_NNLSHP] = {"nnlshp", &ps_policy_plan_calls},
    [PS_POLICY_BESTFIT] = {"bestfit", &ps_policy_simple_calls},
    [PS_POLICY_NEXTFIT] = {"nextfit", &ps_policy_simple_calls},
    [PS_POLICY_NONE] = {"none", &ps_policy_simple_calls},
    [PS_POLICY_CONCAT] = {"concat", &ps_policy_simple_calls},
};

const char *ps_policy_name(ps_policy policy)
{
    if ((unsigned)policy >= sizeof policies / sizeof policies[0])
        return NULL;
    return policies[policy].name;
}

const ps_policy_calls *ps_policy_calls_of(ps_policy policy, uint32_t n_budgets)
{
    return n_budgets > 0 ? &ps_policy_budget_calls : policies[policy].calls;
}
