/*
 * plan.h - packing on a histogram of lengths, no data moved;
 * part of <packstream.h>.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_PLAN_H
#define PACKSTREAM_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------
 * Plans: packing on a histogram of lengths, no data moved
 */

/*
 * A histogram: distinct lengths in ascending order, each with the number of
 * sequences that have it, at least 1.
 */
typedef struct ps_histogram ps_histogram;

/* An empty histogram.  PS_OK, PS_ERR_MEMORY. */
PS_MUST_CHECK ps_result ps_histogram_open(ps_histogram **histogram,
                                          ps_error *err);

/*
 * Adds `count` >= 1 sequences of `length` >= 1 tokens.  Lengths may come in
 * any order; what is added to a length sums up.
 * PS_OK, PS_ERR_ARGUMENT, _MEMORY, _LIMIT (sequences or tokens above
 * 2^63 - 1).
 */
PS_MUST_CHECK ps_result ps_histogram_add(ps_histogram *histogram,
                                         uint32_t length, uint64_t count,
                                         ps_error *err);

/*
 * Reads the histogram of a regular file of framed token records from the
 * LENGTHS record of each stream in it, without reading other records.  The
 * offset of the descriptor has to be 0, and does not change.  A compressed file
 * needs a seek table.
 * PS_OK; PS_ERR_UNSUPPORTED if a stream has no LENGTHS, or the frames no seek
 * table; PS_ERR_ARGUMENT (not such a file), _MAGIC (raw records, or other
 * files), _TRUNCATED, _CORRUPT, _LIMIT, _IO, _MEMORY.
 */
PS_MUST_CHECK ps_result ps_histogram_read(ps_histogram **histogram, int fd,
                                          ps_error *err);

/* How many distinct lengths; length and count of the i-th of them. */
size_t ps_histogram_size(const ps_histogram *histogram);
uint32_t ps_histogram_length(const ps_histogram *histogram, size_t i);
uint64_t ps_histogram_count(const ps_histogram *histogram, size_t i);

/* Sequences and tokens in all. */
uint64_t ps_histogram_sequences(const ps_histogram *histogram);
uint64_t ps_histogram_tokens(const ps_histogram *histogram);

void ps_histogram_free(ps_histogram *histogram);

/*
 * The algorithms, which packstream-packing(7) explains.  SPFHP, LPFHP and
 * NNLSHP are those of Krell, Kosec, Perez and Fitzgibbon (arXiv 2107.02027),
 * section 3.1.
 */
typedef enum ps_algorithm {
    PS_PLAN_NONE,   /* a sequence a pack */
    PS_PLAN_GREEDY, /* next-fit in a fixed, well-mixed order */
    PS_PLAN_SORTED, /* batches of like lengths, padded to the longest */
    PS_PLAN_FFD,    /* first fit decreasing */
    PS_PLAN_BFD,    /* best fit decreasing */
    PS_PLAN_SPFHP,  /* shortest pack first */
    PS_PLAN_LPFHP,  /* longest pack first */
    PS_PLAN_NNLSHP, /* non-negative least squares, packs full exactly */
    PS_PLAN_ENNLSHP /* the same, with packs that are not full */
} ps_algorithm;

/* Lengths that weigh less in nnlshp, and how much, as in the paper. */
#define PS_SHORT_LENGTH 8
#define PS_SHORT_WEIGHT 0.09

typedef struct ps_plan_options {
    uint32_t capacity;   /* L, from 1 */
    uint32_t depth;      /* D, from 1; UINT32_MAX: no cap */
    bool distribute;     /* lpfhp: add a length several times at once */
    double short_weight; /* nnlshp: weight of the residual of lengths... */
    uint32_t short_length; /* ...up to this */
    uint32_t batch;        /* sorted: sequences in a batch, from 1 */
} ps_plan_options;

typedef struct ps_plan ps_plan;

/*
 * Makes a plan: strategies, each a multiset of lengths that fits a pack,
 * with how often it is to be used.
 * PS_OK, PS_ERR_ARGUMENT (a length above the capacity, options out of
 * range), _MEMORY, _LIMIT.
 */
PS_MUST_CHECK ps_result ps_plan_make(ps_plan **plan,
                                     const ps_histogram *histogram,
                                     ps_algorithm algorithm,
                                     const ps_plan_options *options,
                                     ps_error *err);

/* How many strategies there are. */
size_t ps_plan_strategies(const ps_plan *plan);

/*
 * How often strategy `i` is used; its `*n` lengths, ascending, are at
 * *lengths and belong to the plan.
 */
uint64_t ps_plan_strategy(const ps_plan *plan, size_t i,
                          const uint32_t **lengths, uint32_t *n);

/* Packs in all, and the most sequences in one. */
uint64_t ps_plan_packs(const ps_plan *plan);
uint32_t ps_plan_max_depth(const ps_plan *plan);

/*
 * Whether the plan uses every sequence of the histogram once and keeps to
 * capacity and depth.  PS_OK, PS_ERR_CORRUPT, PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result ps_plan_check(const ps_plan *plan,
                                      const ps_histogram *histogram,
                                      const ps_plan_options *options,
                                      ps_error *err);

void ps_plan_free(ps_plan *plan);

/*
 * A bound: no plan of that capacity and depth uses fewer packs.  It is the
 * optimum of the linear relaxation (Gilmore and Gomory, 1961), or, where
 * the search for that had to stop early, what is known to lie below it
 * (Farley, 1990).
 * PS_OK, PS_ERR_ARGUMENT, _MEMORY.
 */
PS_MUST_CHECK ps_result ps_plan_bound(const ps_histogram *histogram,
                                      uint32_t capacity, uint32_t depth,
                                      double *packs, ps_error *err);

#ifdef __cplusplus
}
#endif

#endif
