/*
 * numbers.c - the integers of other programs' arrays as tokens.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/numbers.h"

#include "common/bytes.h"

number_type number_of_token(ps_type token)
{
    return (number_type){.width = ps_type_bytes(token)};
}

bool number_is_token(number_type type, ps_type token)
{
    return !type.is_signed && type.width == ps_type_bytes(token);
}

/* Inlined with constants for all widths.  A negative number is above `max`. */
static inline size_t make(unsigned char *to, size_t token,
                          const unsigned char *from, size_t width,
                          bool is_signed, size_t n, uint32_t max)
{
    const number_type type = {width, is_signed};

    for (size_t i = 0; i < n; i++) {
        const uint64_t value = number_load(from + i * width, type);

        if (value > max)
            return i;
        if (token == 2)
            store_u16(to + 2 * i, (uint16_t)(value & 0xffff));
        else
            store_u32(to + 4 * i, (uint32_t)value);
    }
    return n;
}

static inline size_t make_from(unsigned char *to, size_t token,
                               const unsigned char *from, number_type type,
                               size_t n, uint32_t max)
{
    switch (type.width) {
    case 1:
        return type.is_signed ? make(to, token, from, 1, true, n, max)
                              : make(to, token, from, 1, false, n, max);
    case 2:
        return type.is_signed ? make(to, token, from, 2, true, n, max)
                              : make(to, token, from, 2, false, n, max);
    case 4:
        return type.is_signed ? make(to, token, from, 4, true, n, max)
                              : make(to, token, from, 4, false, n, max);
    default: /* As an unsigned number, a negative one is too large as well. */
        return make(to, token, from, 8, false, n, max);
    }
}

size_t number_make_tokens(unsigned char *tokens, ps_type token,
                          const unsigned char *numbers, number_type type,
                          size_t n, uint32_t max)
{
    return token == PS_U16
               ? make_from(tokens, 2, numbers, type, n, max)
               : make_from(tokens, 4, numbers, type, n, max);
}

/* Finds the greatest first, as that takes no branches. */
static inline size_t check(const unsigned char *p, size_t width, size_t n,
                           uint32_t max)
{
    const number_type type = {.width = width};
    uint32_t greatest = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        const uint32_t id = width == 2 ? load_u16(p + 2 * i)
                                       : load_u32(p + 4 * i);

        greatest = id > greatest ? id : greatest;
    }
    if (greatest <= max)
        return n;
    for (i = 0; number_load(p + i * width, type) <= max; i++)
        continue;
    return i;
}

size_t number_check_tokens(const unsigned char *tokens, ps_type token,
                           size_t n, uint32_t max)
{
    if (token == PS_U16)
        return max == UINT16_MAX ? n : check(tokens, 2, n, max);
    return max == UINT32_MAX ? n : check(tokens, 4, n, max);
}
