/*
 * json_ignore.c - values in a line of JSON that nobody wants to read.
 *
 * Where a value ends shows in its brackets and quotation marks alone.  So a
 * value of any depth takes no memory, and time as its length.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/json_ignore.h"

#include <string.h>

static bool is_blank(unsigned char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static size_t skip_blanks(const unsigned char *line, size_t n, size_t at)
{
    while (at < n && is_blank(line[at]))
        at++;
    return at;
}

/* Behind the string that begins at `at`, or n. */
static size_t skip_string(const unsigned char *line, size_t n, size_t at)
{
    for (at++; at < n && line[at] != '"'; at++)
        if (line[at] == '\\')
            at++;
    return at < n ? at + 1 : n;
}

/* Behind the value that begins at `at`, or n. */
static size_t skip_value(const unsigned char *line, size_t n, size_t at)
{
    size_t depth = 0;

    while (at < n) {
        const unsigned char c = line[at];

        if (c == '"') {
            at = skip_string(line, n, at);
            if (depth == 0)
                return at;
            continue;
        }
        if (depth == 0 && (c == ',' || c == '}' || c == ']' || is_blank(c)))
            return at;
        at++;
        if (c == '[' || c == '{')
            depth++;
        else if ((c == ']' || c == '}') && --depth == 0)
            return at;
    }
    return n;
}

bool json_blank_ignored(unsigned char *line, size_t n,
                        const char *const *keys, uint32_t n_keys)
{
    size_t at = skip_blanks(line, n, 0);
    bool found = false;

    if (at == n || line[at] != '{')
        return false;
    do {
        size_t key = skip_blanks(line, n, at + 1);
        size_t behind, value;

        if (key == n || line[key] != '"')
            break;
        behind = skip_string(line, n, key);
        value = skip_blanks(line, n, behind);
        if (value == n || line[value] != ':')
            break;
        value = skip_blanks(line, n, value + 1);
        at = skip_value(line, n, value);
        for (uint32_t i = 0; i < n_keys && at > value; i++) {
            if (strlen(keys[i]) != behind - key - 2 ||
                memcmp(line + key + 1, keys[i], behind - key - 2) != 0)
                continue;
            memset(line + value, ' ', at - value);
            line[value] = '0';
            found = true;
            break;
        }
        at = skip_blanks(line, n, at);
    } while (at < n && line[at] == ',');
    return found;
}
