/*
 * json_ignore.h - values in a line of JSON that nobody wants to read.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_JSON_IGNORE_H
#define TOKCAT_JSON_IGNORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Puts 0 and blanks in place of the values of these keys, of the object that
 * is the line, so that a JSON library finds nothing to refuse in them: numbers
 * beyond its range, NaN, odd strings, values nested however deep.  True if
 * there was one.  Where the line is no object, or broken, the rest of it stays
 * as it is.
 */
bool json_blank_ignored(unsigned char *line, size_t n,
                        const char *const *keys, uint32_t n_keys);

#endif
