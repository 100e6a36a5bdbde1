/*
 * units.h - lengths counted in units of some tokens.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_UNITS_H
#define LIB_UNITS_H

#include <stdint.h>

/* A length to the nearest unit, but at least one and at most all. */
static inline uint32_t ps_round_to_units(uint32_t length, uint32_t unit,
                                         uint32_t units)
{
    uint32_t u;

    if (unit == 1)
        return length;
    u = (length + unit / 2) / unit;
    if (u == 0)
        return 1;
    return u < units ? u : units;
}

#endif
