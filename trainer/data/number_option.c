/*
 * number_option.c - options whose value is a decimal fraction.
 *
 * SPDX-License-Identifier: MIT
 */
#include "data/number_option.h"

#include <math.h>
#include <stdlib.h>

/* Accepts finite numbers of digits and a decimal point, without a sign. */
static bool parse(const char *text, double *number)
{
    char *end;

    if ((*text < '0' || *text > '9') && *text != '.')
        return false;
    *number = strtod(text, &end);
    return *end == '\0' && isfinite(*number);
}

const char *tr_option_share(void *member, const char *value)
{
    return parse(value, member) && *(double *)member <= 1
               ? NULL
               : "must be a number from 0 to 1";
}

const char *tr_option_below_1(void *member, const char *value)
{
    return parse(value, member) && *(double *)member < 1
               ? NULL
               : "must be a number from 0 to below 1";
}

const char *tr_option_positive(void *member, const char *value)
{
    return parse(value, member) ? NULL : "must be a number, 0 or more";
}
