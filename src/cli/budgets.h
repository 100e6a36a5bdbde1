/*
 * budgets.h - the option --budget=CHANNEL:N.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_BUDGETS_H
#define CLI_BUDGETS_H

#include "packstream.h"

/* Not to be moved: `of` points to `names`. */
typedef struct budget_list {
    char names[PS_MAX_BUDGETS][PS_NAME_BYTES];
    ps_budget_option of[PS_MAX_BUDGETS];
    uint32_t n;
} budget_list;

/*
 * Adds a budget from the value of the option.  Returns NULL, or the reason for
 * refusing the value, as an option_setter does.
 */
const char *budget_list_add(budget_list *list, const char *value);

#endif
