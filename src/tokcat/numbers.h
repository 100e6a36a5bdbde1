/*
 * numbers.h - the integers of other programs' arrays as tokens.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_NUMBERS_H
#define TOKCAT_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"
#include "packstream.h"

/* Little-endian integers of 1, 2, 4 or 8 bytes. */
typedef struct number_type {
    size_t width;
    bool is_signed;
} number_type;

/* The type of the tokens of a stream. */
number_type number_of_token(ps_type token);

/* True if numbers of that type need no conversion. */
bool number_is_token(number_type type, ps_type token);

/*
 * Converts `n` numbers to tokens, up to the first that is negative or above
 * `max`.  Returns how many it converted.
 */
size_t number_make_tokens(unsigned char *tokens, ps_type token,
                          const unsigned char *numbers, number_type type,
                          size_t n, uint32_t max);

/* Returns how many tokens come before the first above `max`. */
size_t number_check_tokens(const unsigned char *tokens, ps_type token,
                           size_t n, uint32_t max);

/*
 * Loads a number, a negative one as its two's complement.  If the type is a
 * constant this is a single load.
 */
static inline uint64_t number_load(const unsigned char *p, number_type type)
{
    const uint64_t sign = UINT64_C(1) << (8 * type.width - 1);
    uint64_t value = *p;

    if (type.width == 8)
        return load_u64(p);
    if (type.width == 4)
        value = load_u32(p);
    else if (type.width == 2)
        value = load_u16(p);
    return type.is_signed ? (value ^ sign) - sign : value;
}

#endif
