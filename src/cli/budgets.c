/*
 * budgets.c - the option --budget=CHANNEL:N.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cli/budgets.h"

#include <string.h>

#include "cli/options.h"

const char *budget_list_add(budget_list *list, const char *value)
{
    const char *limit = strchr(value, ':');
    ps_budget_option *budget = &list->of[list->n];

    if (list->n == PS_MAX_BUDGETS)
        return "exceeds the limit of 4 budgets";
    if (limit == NULL || limit == value ||
        (size_t)(limit - value) >= sizeof list->names[0] ||
        !option_number(limit + 1, 1, PS_MAX_BUDGET, &budget->limit))
        return "must be CHANNEL:N or attention:N, N from 1 to 8Ti";
    budget->name = list->names[list->n];
    memcpy(list->names[list->n++], value, (size_t)(limit - value));
    return NULL;
}
