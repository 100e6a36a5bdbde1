/*
 * weights.c - exact ratios of decimal numbers.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cli/weights.h"

#include <string.h>

#define MAX_SUM (UINT64_MAX / 2)

static bool add_digit(uint64_t *number, unsigned digit)
{
    if (*number > (MAX_SUM - digit) / 10)
        return false;
    *number = *number * 10 + digit;
    return true;
}

const char *weight_read(weight *w, const char *text, size_t n)
{
    const char *point = memchr(text, '.', n);
    const size_t points = point != NULL;

    *w = (weight){0};
    /* Accept "7", "0.7", ".7" and "7.". */
    if (n <= points || strspn(text, ".0123456789") < n ||
        (point != NULL &&
         memchr(point + 1, '.', n - (size_t)(point + 1 - text)) != NULL))
        return "must be a number such as 7 or 0.7";
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '.')
            continue;
        if (!add_digit(&w->digits, (unsigned)(text[i] - '0')))
            return "has too many digits";
        w->decimals += point != NULL && text + i > point;
    }
    return w->digits == 0 ? "must be greater than 0" : NULL;
}

bool weights_settle(const weight *weights, uint32_t n, uint64_t *whole)
{
    unsigned decimals = 0;
    uint64_t sum = 0;
    uint64_t divisor = 0;

    for (uint32_t i = 0; i < n; i++)
        if (weights[i].decimals > decimals)
            decimals = weights[i].decimals;
    for (uint32_t i = 0; i < n; i++) {
        whole[i] = weights[i].digits;
        for (unsigned k = weights[i].decimals; k < decimals; k++)
            if (!add_digit(&whole[i], 0))
                return false;
        if (whole[i] > MAX_SUM - sum)
            return false;
        sum += whole[i];
        /* `divisor` is the greatest common divisor of all numbers so far. */
        for (uint64_t b = whole[i]; b != 0;) {
            const uint64_t rest = divisor % b;

            divisor = b;
            b = rest;
        }
    }
    for (uint32_t i = 0; i < n; i++)
        whole[i] /= divisor;
    return true;
}
