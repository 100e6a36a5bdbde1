/*
 * mem_bound.h - allocations whose sizes can be known without making them,
 * and arrays that grow.
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

/* What malloc adds to an allocation, and to one that has its own pages. */
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

/* A bound for `n` elements of `size` bytes, allocated at once. */
static inline uint64_t ps_mem_array(uint64_t n, size_t size)
{
    uint64_t all = ps_mem_times(n, size);

    return ps_mem_sum(all, all < PS_MEM_LARGE
                      ? PS_MEM_HEAD
                      : PS_MEM_HEAD + PS_MEM_PAGE);
}

/*
 * Gives an array a capacity of at least `needed` elements.  A new one (NULL,
 * a capacity of 0) starts at `min` of them, at least 1; a full one doubles.
 * Returns the array, which may have moved, or NULL without memory: then the
 * old one is untouched, and still the caller's to free.
 */
void *ps_array_grow(void *array, size_t *capacity, size_t needed, size_t min,
                    size_t size);

/*
 * A bound for such an array with `n` elements: its capacity may be twice as
 * many, and the old one is there while it moves.
 */
static inline uint64_t ps_mem_growing(uint64_t n, uint64_t min,
                                      size_t size)
{
    uint64_t max = n > min ? n : min;

    return ps_mem_sum(ps_mem_array(ps_mem_times(2, max), size),
                      ps_mem_array(max, size));
}

/* The same where the capacity is known to be `min`, doubled as needed. */
static inline uint64_t ps_mem_doubling(uint64_t n, uint64_t min,
                                       size_t size)
{
    uint64_t capacity = min;

    while (capacity < n && capacity <= UINT64_MAX / 2)
        capacity *= 2;
    if (capacity < n || capacity == min)
        return ps_mem_array(capacity < n ? n : capacity, size);
    return ps_mem_sum(ps_mem_array(capacity, size),
                      ps_mem_array(capacity / 2, size));
}

typedef struct ps_mem {
    uint64_t bytes; /* asked for so far */
    bool counts;    /* nothing is allocated, only counted */
    bool failed;    /* an allocation has failed */
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
