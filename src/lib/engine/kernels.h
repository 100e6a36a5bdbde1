/*
 * kernels.h - loops over two runs of numbers, side by side.
 *
 * A packer spends most of its time here.  The same loops are compiled for
 * several instruction sets; an engine uses the fastest that the machine has.
 * All of them give the same answers.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_KERNELS_H
#define LIB_ENGINE_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Loops work on groups of so many numbers.  They also read up to a group less
 * one of numbers in front of each run, whose sums must be too small to matter.
 */
#define PS_SEARCH_GROUP 16

typedef struct ps_max_sum {
    int32_t sum;
    uint32_t index;
} ps_max_sum;

/*
 * The greatest of the sums a[i] + b[i] of two runs of n numbers each, and the
 * last index that has it.  If no sum is at least `min`, the sum is less than
 * that, and the index says nothing.
 */
typedef ps_max_sum (*ps_search)(const int32_t *a, const int32_t *b, uint32_t n,
                              int32_t min);

/*
 * Rows of a knapsack are reversed: the value of room c, from 0 to `units`,
 * stands at units - c.  Values do not fall with the room, and none is below 0.
 *
 * A row for any number of sequences: to[c] becomes the greatest of best[i] +
 * to[c - i] for i from 1 to c, of 0 and of to[c - 1].
 */
typedef void (*ps_knapsack_any)(const int32_t *best, int32_t *to,
                                uint32_t units);

/*
 * A row for one sequence more: from room i on, to[c] becomes best + from[c -
 * i] if that is greater.  `to` and `from` do not overlap.
 */
typedef void (*ps_knapsack_more)(int32_t best, uint32_t i,
                                 const int32_t *from, int32_t *to,
                                 uint32_t units);

/*
 * The sum of the products a[i] * b[i].  A group of sums is made side by side,
 * and these are added up in one order, so that all variants round alike.
 */
typedef double (*ps_dot)(const double *a, const double *b, uint32_t n);

/* Adds factor * from[i] to to[i]; the two do not overlap. */
typedef void (*ps_add_times)(double factor, const double *from, double *to,
                             uint32_t n);

/* All of them for one instruction set. */
typedef struct ps_kernels {
    const char *name;
    ps_search search;
    ps_knapsack_any any;
    ps_knapsack_more more;
    ps_dot dot;
    ps_add_times add_times;
} ps_kernels;

/* The fastest that this machine can do. */
const ps_kernels *ps_kernels_best(void);

/*
 * By number, and whether this machine can do it; 0 is plain and always
 * works.  NULL beyond the last.
 */
const ps_kernels *ps_kernels_variant(unsigned number, bool *works);

#endif
