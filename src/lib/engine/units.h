/*
 * units.h - coarse units of length, for tables of prices and values.
 *
 * Lengths are converted several times per sequence, so this multiplies by a
 * fixed-point inverse: a division would take longer than everything else that
 * is done with a length.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_UNITS_H
#define LIB_ENGINE_UNITS_H

#include <stdint.h>

#define PS_UNITS_SHIFT 48

typedef struct ps_units {
    uint32_t size;    /* tokens per unit */
    uint32_t count;   /* whole units in the capacity */
    uint64_t inverse; /* 2^48 / size, rounded up */
} ps_units;

/*
 * Returns the smallest units such that the capacity, at most 2^24 tokens, has
 * at most `max` <= 2,048 of them.  Then n * inverse is below 2^60 for every
 * length n, and n * (inverse * size - 2^48) is below 2^48, so quotients are
 * exact.
 */
static inline ps_units ps_units_of(uint32_t capacity, uint32_t max)
{
    uint32_t size = (capacity - 1) / max + 1;

    return (ps_units){.size = size,
                      .count = capacity / size,
                      .inverse = ((UINT64_C(1) << PS_UNITS_SHIFT) + size -
                                  1) / size};
}

/* Whole units in `tokens`, which is at most the capacity plus one unit. */
static inline uint32_t ps_units_in(const ps_units *units, uint32_t tokens)
{
    return (uint32_t)(tokens * units->inverse >> PS_UNITS_SHIFT);
}

/* Rounds a length to the nearest unit, at least 1 and at most `count`. */
static inline uint32_t ps_units_round(const ps_units *units, uint32_t length)
{
    uint32_t u;

    if (units->size == 1)
        return length;
    u = ps_units_in(units, length + units->size / 2);
    if (u == 0)
        return 1;
    return u < units->count ? u : units->count;
}

#endif
