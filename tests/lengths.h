/*
 * lengths.h - lengths of sequences for tests and benchmarks, drawn from a
 * distribution and put in an order that is easy or hard to pack.
 *
 * The same for a seed on every machine: whatever is drawn is drawn with
 * whole numbers.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_LENGTHS_H
#define TESTS_LENGTHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A distribution. */
typedef struct lengths lengths;

typedef enum lengths_shape {
    LENGTHS_RANDOM,      /* independent of each other */
    LENGTHS_ASCENDING,   /* sorted */
    LENGTHS_DESCENDING,  /* sorted the other way */
    LENGTHS_ALTERNATING, /* one of the shorter half, one of the longer */
    LENGTHS_DRIFTING,    /* the mean rises and falls, twice */
    LENGTHS_BURSTY,      /* runs of short ones, of long ones, of equal ones */
    LENGTHS_SHAPES
} lengths_shape;

/*
 * Each of these gives NULL if it fails.  From lines of "length count" with
 * comments after '#':
 */
lengths *lengths_from_file(FILE *file);

/* By the mean and the deviation of the logarithm; what is longer is cut. */
lengths *lengths_lognormal(double mean, double deviation, uint32_t longest);

/* P(length > n) falls with 1/n beyond a few; what is longer is cut. */
lengths *lengths_heavy(uint32_t longest);

lengths *lengths_constant(uint32_t length);

void lengths_free(lengths *l);

/* The longest that can be drawn. */
uint32_t lengths_longest(const lengths *l);

/* Draws `n` lengths.  False if memory ran out. */
bool lengths_draw(const lengths *l, lengths_shape shape, uint64_t seed,
                  uint32_t *to, size_t n);

/* NULL beyond the last shape. */
const char *lengths_shape_name(lengths_shape shape);

#endif
