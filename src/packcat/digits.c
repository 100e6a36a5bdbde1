/*
 * digits.c - integers as decimal text, quickly.
 *
 * printf reads its format again for every number; a text export of tokens
 * is little else than numbers, so they are made here, two digits a step.
 *
 * SPDX-License-Identifier: MIT
 */

#include <string.h>

#include "digits.h"

static const char pairs[] =
    "0001020304050607080910111213141516171819"
    "2021222324252627282930313233343536373839"
    "4041424344454647484950515253545556575859"
    "6061626364656667686970717273747576777879"
    "8081828384858687888990919293949596979899";

static unsigned digits_count(uint64_t value)
{
    unsigned n = 1;

    while (value >= 10000) {
        value /= 10000;
        n += 4;
    }
    return n + (value >= 10) + (value >= 100) + (value >= 1000);
}

char *digits_unsigned(char *at, uint64_t value)
{
    char *const end = at + digits_count(value);
    char *p = end;

    while (value >= 100) {
        p -= 2;
        memcpy(p, pairs + 2 * (value % 100), 2);
        value /= 100;
    }
    if (value >= 10)
        memcpy(at, pairs + 2 * value, 2);
    else
        *at = (char)('0' + value);
    return end;
}

char *digits_signed(char *at, int64_t value)
{
    uint64_t magnitude = (uint64_t)value;

    if (value < 0) {
        *at++ = '-';
        magnitude = 0 - magnitude;
    }
    return digits_unsigned(at, magnitude);
}
