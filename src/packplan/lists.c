/*
 * lists.c - option values that are lists or fractions.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packplan/lists.h"

#include <stdlib.h>
#include <string.h>

#include "cli/options.h"

#define ENTRY_BYTES 64

bool list_next(const char **list, char *entry, size_t size)
{
    size_t n;

    if (*list == NULL)
        return false;
    n = strcspn(*list, ",");
    if (n == 0 || n >= size)
        return false;
    memcpy(entry, *list, n);
    entry[n] = '\0';
    *list = (*list)[n] == ',' ? *list + n + 1 : NULL;
    return true;
}

bool list_numbers(const char *list, uint32_t max, const char *unlimited,
                  uint32_t *to, unsigned room, unsigned *n)
{
    char entry[ENTRY_BYTES];
    uint64_t number;

    for (*n = 0; *n < room && list_next(&list, entry, sizeof entry); ++*n)
        if (unlimited != NULL && strcmp(entry, unlimited) == 0)
            to[*n] = UINT32_MAX;
        else if (option_number(entry, 1, max, &number))
            to[*n] = (uint32_t)number;
        else
            return false;
    return list == NULL;
}

bool list_decimals(const char *list, double *to, unsigned room, unsigned *n)
{
    char entry[ENTRY_BYTES];

    for (*n = 0; *n < room && list_next(&list, entry, sizeof entry); ++*n)
        if (!decimal_parse(entry, &to[*n]))
            return false;
    return list == NULL;
}

/* The shape is checked by hand: strtod takes much more than we want. */
bool decimal_parse(const char *text, double *to)
{
    size_t whole = strspn(text, "0123456789");
    size_t part = text[whole] == '.' ? strspn(text + whole + 1, "0123456789")
                                     : 0;
    size_t length = whole + (text[whole] == '.' ? 1 : 0) + part;

    if (whole + part == 0 || text[length] != '\0' || length >= ENTRY_BYTES)
        return false;
    *to = strtod(text, NULL);
    return true;
}
