/*
 * units.h - lengths counted in units of some tokens.
 *
 * Lengths are counted several times for each sequence that is packed, so
 * they are multiplied by an inverse: a division takes as long as all else
 * that is done with them.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_UNITS_H
#define LIB_ENGINE_UNITS_H

#include <stdint.h>

#define PS_UNITS_SHIFT 48

typedef struct ps_units {
    uint32_t size;    /* tokens */
    uint32_t count;   /* of the capacity */
    uint64_t inverse; /* 2^48 / size, rounded up */
} ps_units;

/*
 * At most `max` <= 2,048 units for a capacity of at most 2^24 tokens: then
 * n * inverse is below 2^60 for all n in use, and n * (inverse * size - 2^48)
 * below 2^48, which makes quotients exact.
 */
static inline ps_units ps_units_of(uint32_t capacity, uint32_t max)
{
    uint32_t size = (capacity - 1) / max + 1;

    return (ps_units){.size = size,
                      .count = capacity / size,
                      .inverse = ((UINT64_C(1) << PS_UNITS_SHIFT) + size -
                                  1) / size};
}

/* How many whole units are in some tokens, up to the capacity and a unit. */
static inline uint32_t ps_units_in(const ps_units *units, uint32_t tokens)
{
    return (uint32_t)(tokens * units->inverse >> PS_UNITS_SHIFT);
}

/* A length to the nearest unit, but at least one and at most all. */
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
