/*
 * mem_bound.h - allocations whose sizes can be known without making them.
 *
 * The function that allocates the arrays of an object gets a ps_mem, and
 * calls ps_mem_alloc for each.  The same function, given a ps_mem that only
 * counts, tells the bound of the memory that the object takes; so the two
 * cannot differ.  Sums stay at the greatest number instead of overflowing.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_BASE_MEM_BOUND_H
#define LIB_BASE_MEM_BOUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What malloc takes besides, for small pieces and for those of whole pages. */
#define PS_MEM_HEAD 32
#define PS_MEM_PAGE 4096
#define PS_MEM_LARGE (UINT64_C(64) << 10)

static inline uint64_t ps_mem_sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline uint64_t ps_mem_times(uint64_t a, uint64_t b)
{
    return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

/* `n` elements of some bytes, allocated at once. */
static inline uint64_t ps_mem_array(uint64_t n, size_t size)
{
    uint64_t all = ps_mem_times(n, size);

    return ps_mem_sum(all, all < PS_MEM_LARGE
                      ? PS_MEM_HEAD
                      : PS_MEM_HEAD + PS_MEM_PAGE);
}

/*
 * The same in an array that doubles, from `min` on, when it is full: it
 * may have twice the room, and the one before it is there while it moves.
 */
static inline uint64_t ps_mem_growing(uint64_t n, uint64_t min,
                                      size_t size)
{
    uint64_t max = n > min ? n : min;

    return ps_mem_sum(ps_mem_array(ps_mem_times(2, max), size),
                      ps_mem_array(max, size));
}

/* The same where the room is known to be `min` doubled, if need be. */
static inline uint64_t ps_mem_doubling(uint64_t n, uint64_t min,
                                       size_t size)
{
    uint64_t room = min;

    while (room < n && room <= UINT64_MAX / 2)
        room *= 2;
    if (room < n || room == min)
        return ps_mem_array(room < n ? n : room, size);
    return ps_mem_sum(ps_mem_array(room, size),
                      ps_mem_array(room / 2, size));
}

typedef struct ps_mem {
    uint64_t bytes; /* asked for so far */
    bool counts;    /* only: nothing is allocated */
    bool failed;    /* some allocation did */
} ps_mem;

/*
 * `n` zeroed elements of `size` bytes; the caller frees them.  NULL if `m`
 * only counts, or fails: then m->failed is set.
 */
void *ps_mem_alloc(ps_mem *m, uint64_t n, size_t size);

static inline uint64_t ps_mem_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t ps_mem_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

#endif
