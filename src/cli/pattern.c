/*
 * pattern.c - file names for ranks.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cli/pattern.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Maximum length of a formatted rank, in bytes. */
#define RANK_BYTES 10

/*
 * Parses the conversion after a %.  Returns its length in bytes, or 0 if it is
 * invalid.  *digits is set to the minimum number of digits, or -1 for "%%".
 */
static size_t read_conversion(const char *at, int *digits)
{
    const bool zero = at[0] == '0' && at[1] >= '1' && at[1] <= '9';

    *digits = zero ? at[1] - '0' : 0;
    if (at[0] == '%') {
        *digits = -1;
        return 1;
    }
    at += zero ? 2 : 0;
    return at[0] != 'd' ? 0 : zero ? 3 : 1;
}

bool pattern_places(const char *pattern, unsigned *places)
{
    int digits;

    *places = 0;
    while ((pattern = strchr(pattern, '%')) != NULL) {
        const size_t n = read_conversion(++pattern, &digits);

        if (n == 0)
            return false;
        pattern += n;
        *places += digits >= 0;
    }
    return true;
}

char *pattern_name(const char *pattern, uint32_t rank)
{
    char *name = malloc(strlen(pattern) / 2 * RANK_BYTES + 2);
    char *to = name;

    if (name == NULL)
        return NULL;
    while (*pattern != '\0') {
        int digits = -1;

        if (*pattern == '%')
            pattern += read_conversion(pattern + 1, &digits);
        if (digits >= 0)
            to += snprintf(to, RANK_BYTES + 1, "%0*" PRIu32, digits, rank);
        else
            *to++ = *pattern;
        pattern++;
    }
    *to = '\0';
    return name;
}
