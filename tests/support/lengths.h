/*
 * lengths.h - lengths of sequences for tests and benchmarks, drawn from a
 * distribution and put in an order that is easy or hard to pack.
 *
 * The same for a seed on every machine: whatever is drawn is drawn with
 * whole numbers, from weights rounded to whole numbers.
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
    LENGTHS_SHAPES,      /* those above suit every distribution */
    LENGTHS_TURNS = LENGTHS_SHAPES, /* the parts of a mixture in turns */
    LENGTHS_FADING, /* from the first part to the last and back, twice */
    LENGTHS_STORED  /* as they are in a file of raw lengths, over and over */
} lengths_shape;

/*
 * Each of these gives NULL if it fails.  From lines of "length count" with
 * comments after '#':
 */
lengths *lengths_from_file(FILE *file);

/*
 * From little-endian u32, one for each sequence; what is above `longest` is
 * cut.  LENGTHS_STORED keeps their order.
 */
lengths *lengths_from_raw(FILE *file, uint32_t longest);

/*
 * From text that names a distribution; what it has above `longest` is cut:
 *
 *     uniform:A,B         whole numbers from A to B
 *     normal:MEAN,DEVIATION
 *     lognormal:M,S       mean and deviation of the logarithm
 *     pareto:LEAST,ALPHA  P(length > n) = (LEAST / n)^ALPHA
 *     poisson:MEAN        from 1
 *     geometric:MEAN      from 1
 *     heavy:MIDDLE        P(length <= n) = n / (n + MIDDLE)
 *     =N                  always N
 *
 * or a mixture of at most 16, with weights (1): "mix:0.7*normal:300,60+0.3*=9"
 * or without "mix:".
 */
lengths *lengths_parse(const char *text, uint32_t longest);

/* By the mean and the deviation of the logarithm; what is longer is cut. */
lengths *lengths_lognormal(double mean, double deviation, uint32_t longest);

/* P(length > n) falls with 1/n beyond a few; what is longer is cut. */
lengths *lengths_heavy(uint32_t longest);

lengths *lengths_constant(uint32_t length);

void lengths_free(lengths *l);

/* The longest that can be drawn. */
uint32_t lengths_longest(const lengths *l);

/* How long the runs of LENGTHS_TURNS are in the mean (1,024). */
void lengths_set_run(lengths *l, uint32_t records);

/*
 * Draws `n` lengths; at random if the shape wants a mixture or a raw file and
 * there is none.  False if memory ran out.
 */
bool lengths_draw(const lengths *l, lengths_shape shape, uint64_t seed,
                  uint32_t *to, size_t n);

/* NULL beyond the last shape. */
const char *lengths_shape_name(lengths_shape shape);

#endif
