/*
 * range.c - a range of records, "A:B", with the meaning of a Python slice.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cli/range.h"

#include <stdio.h>
#include <string.h>

#include "cli/options.h"

/* Parses a bound of `n` characters.  If `n` is 0, its value is `missing`. */
static bool parse_bound(const char *text, size_t n, uint64_t missing,
                        range_bound *bound)
{
    char number[32];

    *bound = (range_bound){.number = missing};
    if (n == 0)
        return true;
    if (n >= sizeof number)
        return false;
    (void)snprintf(number, sizeof number, "%.*s", (int)n, text);
    bound->from_end = number[0] == '-';
    if (!option_number(number + bound->from_end, 0, UINT64_MAX,
                       &bound->number))
        return false;
    /* As in Python, -0 means 0. */
    bound->from_end = bound->from_end && bound->number > 0;
    return true;
}

const char *range_parse(void *to, const char *text)
{
    range *r = to;
    const char *colon = strchr(text, ':');

    if (colon == NULL ||
        !parse_bound(text, (size_t)(colon - text), 0, &r->first) ||
        !parse_bound(colon + 1, strlen(colon + 1), UINT64_MAX, &r->end))
        return "must be A:B, A: or :B, for packs A to B - 1: 5:6 is only pack "
               "5";
    return NULL;
}

bool range_needs_count(const range *r)
{
    return r->first.from_end || r->end.from_end;
}

void range_settle(range *r, uint64_t count)
{
    range_bound *bounds[] = {&r->first, &r->end};

    for (size_t i = 0; i < 2; i++) {
        range_bound *b = bounds[i];

        if (b->from_end)
            b->number = b->number < count ? count - b->number : 0;
        b->from_end = false;
    }
}
