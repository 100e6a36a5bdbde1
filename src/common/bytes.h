/*
 * bytes.h - little-endian integers in unaligned memory, and rounding; shared by
 * the library and the programs.
 *
 * On a little-endian machine, compilers turn the shifts into plain loads and
 * stores.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef COMMON_BYTES_H
#define COMMON_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline uint16_t load_u16(const unsigned char *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t load_u32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

static inline uint64_t load_u64(const unsigned char *p)
{
    return (uint64_t)load_u32(p) | (uint64_t)load_u32(p + 4) << 32;
}

static inline void store_u16(unsigned char *p, uint16_t v)
{
    p[0] = (unsigned char)(v & 0xff);
    p[1] = (unsigned char)(v >> 8);
}

static inline void store_u32(unsigned char *p, uint32_t v)
{
    store_u16(p, (uint16_t)(v & 0xffff));
    store_u16(p + 2, (uint16_t)(v >> 16));
}

static inline void store_u64(unsigned char *p, uint64_t v)
{
    store_u32(p, (uint32_t)(v & 0xffffffff));
    store_u32(p + 4, (uint32_t)(v >> 32));
}

/* Loads a number of `width` bytes, 0 to 8. */
static inline uint64_t load_low(const unsigned char *p, size_t width)
{
    uint64_t v = 0;

    for (size_t i = 0; i < width; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

/* Stores the low `width` bytes of `v`.  `width` is 0 to 8. */
static inline void store_low(unsigned char *p, uint64_t v, size_t width)
{
    for (size_t i = 0; i < width; i++)
        p[i] = (unsigned char)(v >> (8 * i) & 0xff);
}

/*
 * Rounds `n` up to a multiple of `unit`, which is a power of two. n + unit must
 * not overflow.
 */
static inline uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) & ~(unit - 1);
}

/* True if all `n` bytes are zero; true if `n` is 0. */
static inline bool all_zero(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != 0)
            return false;
    return true;
}

#endif
