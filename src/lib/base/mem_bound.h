/*
 * mem_bound.h - sums of memory, which stay at the greatest number instead of
 * overflowing.
 *
 * Beside each allocation that can be large, a function tells how much it
 * takes at most; memory.c adds them up.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_BASE_MEM_BOUND_H
#define LIB_BASE_MEM_BOUND_H

#include <stddef.h>
#include <stdint.h>

/* What malloc takes besides, for small pieces and for those of whole pages. */
#define PS_AMOUNT_HEAD 32
#define PS_AMOUNT_PAGE 4096
#define PS_AMOUNT_LARGE (UINT64_C(64) << 10)

static inline uint64_t ps_amount_sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline uint64_t ps_amount_times(uint64_t a, uint64_t b)
{
    return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

/* `n` elements of some bytes, allocated at once. */
static inline uint64_t ps_amount_array(uint64_t n, size_t size)
{
    uint64_t all = ps_amount_times(n, size);

    return ps_amount_sum(all, all < PS_AMOUNT_LARGE
                                    ? PS_AMOUNT_HEAD
                                    : PS_AMOUNT_HEAD + PS_AMOUNT_PAGE);
}

/*
 * The same in an array that doubles, from `least` on, when it is full: it
 * may have twice the room, and the one before it is there while it moves.
 */
static inline uint64_t ps_amount_growing(uint64_t n, uint64_t least,
                                         size_t size)
{
    uint64_t most = n > least ? n : least;

    return ps_amount_sum(ps_amount_array(ps_amount_times(2, most), size),
                         ps_amount_array(most, size));
}

/* The same where the room is known to be `least` doubled, if need be. */
static inline uint64_t ps_amount_doubling(uint64_t n, uint64_t least,
                                          size_t size)
{
    uint64_t room = least;

    while (room < n && room <= UINT64_MAX / 2)
        room *= 2;
    if (room < n || room == least)
        return ps_amount_array(room < n ? n : room, size);
    return ps_amount_sum(ps_amount_array(room, size),
                         ps_amount_array(room / 2, size));
}

static inline uint64_t ps_amount_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t ps_amount_most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

#endif
