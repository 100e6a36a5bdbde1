/*
 * kernels.h - the inner loops of the engine, for several instruction sets.
 *
 * The engine spends most of its time here.  It uses the fastest variant that
 * the machine supports.  All variants return the same results.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_KERNELS_H
#define LIB_ENGINE_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Searches process groups of this many elements.  They read up to one element
 * less than a group before the start of each array.  The sums of these elements
 * must be too small to win.
 */
#define PS_SEARCH_GROUP 16

typedef struct ps_max_sum {
    int32_t sum;
    uint32_t index;
} ps_max_sum;

/*
 * Returns the maximum of a[i] + b[i] for i < n, and the last index with it.  If
 * no sum reaches `min`, the result's sum is below `min` and its index
 * undefined.
 */
typedef ps_max_sum (*ps_search)(const int32_t *a, const int32_t *b, uint32_t n,
                              int32_t min);

/*
 * Rows of a knapsack table are reversed: the value of capacity c, from 0 to
 * `units`, is at index units - c.  Values are at least 0 and never decrease
 * with the capacity.
 *
 * Fills the row for any number of sequences.  With V(c) for the value of
 * capacity c, V(c) = max(0, V(c - 1), best[i] + V(c - i) for 1 <= i <= c).
 */
typedef void (*ps_knapsack_any)(const int32_t *best, int32_t *to,
                                uint32_t units);

/*
 * Extends a row by one sequence of length i and score `best`: for capacities
 * c >= i, to(c) = max(to(c), best + from(c - i)).  The rows must not overlap.
 */
typedef void (*ps_knapsack_more)(int32_t best, uint32_t i,
                                 const int32_t *from, int32_t *to,
                                 uint32_t units);

/*
 * Dot product.  Partial sums are always added in the same order, so all
 * variants round in the same way.
 */
typedef double (*ps_dot)(const double *a, const double *b, uint32_t n);

/* to[i] += factor * from[i].  The arrays must not overlap. */
typedef void (*ps_add_times)(double factor, const double *from, double *to,
                             uint32_t n);

/* The loops for one instruction set. */
typedef struct ps_kernels {
    const char *name;
    ps_search search;
    ps_knapsack_any any;
    ps_knapsack_more more;
    ps_dot dot;
    ps_add_times add_times;
} ps_kernels;

/* The fastest variant that this machine supports. */
const ps_kernels *ps_kernels_best(void);

/*
 * Returns variant `number`, or NULL if there is none.  Sets *works if this
 * machine supports it.  Variant 0 is plain C and always works.
 */
const ps_kernels *ps_kernels_variant(unsigned number, bool *works);

#endif
