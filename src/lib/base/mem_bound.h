/*
 * mem_bound.h - allocations whose size can be computed in advance, and growing
 * arrays.
 *
 * SPDX-License-Identifier: MIT
 *
 * The function that allocates the arrays of an object takes a ps_mem and calls
 * ps_mem_alloc for each array.  Given a ps_mem that only counts, the same
 * function computes the memory bound of the object, so the two cannot diverge.
 * Sums saturate at UINT64_MAX.
 */

#ifndef LIB_BASE_MEM_BOUND_H
#define LIB_BASE_MEM_BOUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Overhead of malloc, in bytes: PS_MEM_HEAD per allocation, and PS_MEM_PAGE
 * more if it has at least PS_MEM_LARGE bytes, since it may then be mapped.
 */
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

/* Upper bound, in bytes, for one allocation of `n` elements of `size` bytes. */
static inline uint64_t ps_mem_array(uint64_t n, size_t size)
{
    uint64_t all = ps_mem_times(n, size);

    return ps_mem_sum(all, all < PS_MEM_LARGE
                      ? PS_MEM_HEAD
                      : PS_MEM_HEAD + PS_MEM_PAGE);
}

/*
 * Grows an array to a capacity of at least `needed` elements.  A new array
 * (NULL, capacity 0) starts with `min` >= 1 elements; a full array doubles.
 * Returns the array, which may have moved.  If out of memory, returns NULL; the
 * old array is then unchanged and still owned by the caller.
 */
void *ps_array_grow(void *array, size_t *capacity, size_t needed, size_t min,
                    size_t size);

/*
 * Upper bound, in bytes, for a growing array with `n` elements: its capacity
 * may be twice as large, and the old array exists until it has been copied.
 */
static inline uint64_t ps_mem_growing(uint64_t n, uint64_t min,
                                      size_t size)
{
    uint64_t max = n > min ? n : min;

    return ps_mem_sum(ps_mem_array(ps_mem_times(2, max), size),
                      ps_mem_array(max, size));
}

/* Like ps_mem_growing, if the capacity always starts at `min` and doubles. */
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
    uint64_t bytes; /* bytes requested so far, with overhead */
    bool counts;    /* count only, do not allocate */
    bool failed;    /* an allocation failed */
} ps_mem;

/*
 * Returns `n` zeroed elements of `size` bytes, owned by the caller.  Returns
 * NULL if `m` only counts or if out of memory, and in the latter case sets
 * m->failed.
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
