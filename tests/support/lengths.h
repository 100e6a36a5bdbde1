/*
 * lengths.h - lengths of sequences for tests and benchmarks, drawn from a
 * distribution and put in an order that is easy or hard to pack.
 *
 * A seed gives the same lengths on every machine: all draws use integers, from
 * weights rounded to integers.
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
    LENGTHS_BURSTY,      /* runs of short, of long and of equal lengths */
    LENGTHS_SHAPES,      /* the shapes above suit every distribution */
    LENGTHS_TURNS = LENGTHS_SHAPES, /* the parts of a mixture in turns */
    LENGTHS_FADING, /* from the first part to the last and back, twice */
    LENGTHS_STORED  /* in the order of a raw file, repeated */
} lengths_shape;

/*
 * Each of these returns NULL if it fails.  From lines of "length count" with
 * comments after '#':
 */
lengths *lengths_from_file(FILE *file);

/*
 * From little-endian u32, one per sequence, truncated to `longest`.
 * LENGTHS_STORED keeps their order.
 */
lengths *lengths_from_raw(FILE *file, uint32_t longest);

/*
 * From text that names a distribution, truncated to `longest`:
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

/* From the mean and deviation of the logarithm, truncated to `longest`. */
lengths *lengths_lognormal(double mean, double deviation, uint32_t longest);

/* P(length > n) falls with 1/n for all but short ones; also truncated. */
lengths *lengths_heavy(uint32_t longest);

lengths *lengths_constant(uint32_t length);

void lengths_free(lengths *l);

/* The longest that can be drawn. */
uint32_t lengths_longest(const lengths *l);

/* Mean length of the runs of LENGTHS_TURNS (1,024). */
void lengths_set_run(lengths *l, uint32_t records);

/*
 * Draws `n` lengths; at random if the shape needs a mixture or a raw file and
 * the distribution is of another kind.  False if memory ran out.
 */
bool lengths_draw(const lengths *l, lengths_shape shape, uint64_t seed,
                  uint32_t *to, size_t n);

/* NULL beyond the last shape. */
const char *lengths_shape_name(lengths_shape shape);

#endif
