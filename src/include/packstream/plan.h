/*
 * plan.h - packing of a histogram of lengths; part of <packstream.h>.
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
 * Plans: packing of a histogram of lengths, without moving data
 */

/*
 * A histogram: distinct lengths in ascending order, each with the number of
 * sequences of that length, at least 1.
 */
typedef struct ps_histogram ps_histogram;

/* Creates an empty histogram.  PS_OK, PS_ERR_MEMORY. */
PS_MUST_CHECK ps_result ps_histogram_open(ps_histogram **histogram,
                                          ps_error *err);

/*
 * Adds `count` sequences of `length` tokens, both at least 1.  Lengths can be
 * added in any order and repeatedly.
 * PS_OK, PS_ERR_ARGUMENT, _MEMORY, _LIMIT (more than 2^63 - 1 sequences or
 * tokens).
 */
PS_MUST_CHECK ps_result ps_histogram_add(ps_histogram *histogram,
                                         uint32_t length, uint64_t count,
                                         ps_error *err);

/*
 * Reads the histogram of a regular file of framed token records from the
 * LENGTHS record of each stream, without reading the other records.  The file
 * offset of `fd` must be 0 and is not changed.  A compressed file needs a seek
 * table.
 * PS_OK, PS_ERR_UNSUPPORTED (a stream without LENGTHS, or frames without a seek
 * table), PS_ERR_ARGUMENT (not a regular file at offset 0), _MAGIC (raw records
 * or another type of file), _TRUNCATED, _CORRUPT, _LIMIT, _IO, _MEMORY.
 */
PS_MUST_CHECK ps_result ps_histogram_read(ps_histogram **histogram, int fd,
                                          ps_error *err);

/* Number of distinct lengths; the i-th length, in tokens, and its count. */
size_t ps_histogram_size(const ps_histogram *histogram);
uint32_t ps_histogram_length(const ps_histogram *histogram, size_t i);
uint64_t ps_histogram_count(const ps_histogram *histogram, size_t i);

/* Total number of sequences and of tokens. */
uint64_t ps_histogram_sequences(const ps_histogram *histogram);
uint64_t ps_histogram_tokens(const ps_histogram *histogram);

void ps_histogram_free(ps_histogram *histogram);

/*
 * Planning algorithms, explained in packstream-packing(7).  SPFHP, LPFHP and
 * NNLSHP are from Krell, Kosec, Perez and Fitzgibbon (arXiv 2107.02027),
 * section 3.1.
 */
typedef enum ps_algorithm {
    PS_PLAN_NONE,   /* one sequence per pack */
    PS_PLAN_GREEDY, /* next-fit in a fixed pseudo-random order */
    PS_PLAN_SORTED, /* batches of similar lengths, padded to the longest */
    PS_PLAN_FFD,    /* first fit decreasing */
    PS_PLAN_BFD,    /* best fit decreasing */
    PS_PLAN_SPFHP,  /* shortest-pack-first histogram packing */
    PS_PLAN_LPFHP,  /* longest-pack-first histogram packing */
    PS_PLAN_NNLSHP, /* non-negative least squares, completely full packs */
    PS_PLAN_ENNLSHP /* non-negative least squares, any packs */
} ps_algorithm;

/*
 * Lengths up to PS_SHORT_LENGTH tokens have weight PS_SHORT_WEIGHT in the
 * residual of nnlshp, as in the paper.
 */
#define PS_SHORT_LENGTH 8
#define PS_SHORT_WEIGHT 0.09

typedef struct ps_plan_options {
    uint32_t capacity;     /* L, tokens, at least 1 */
    uint32_t depth;        /* D, at least 1; UINT32_MAX: no limit */
    bool distribute;       /* lpfhp: add one length several times at a time */
    double short_weight;   /* nnlshp: weight of short lengths in the residual */
    uint32_t short_length; /* nnlshp: greatest short length, in tokens */
    uint32_t batch;        /* sorted: sequences per batch, at least 1 */
} ps_plan_options;

typedef struct ps_plan ps_plan;

/*
 * Computes a plan: a list of strategies, each a multiset of lengths that fit
 * one pack, with a repeat count.
 * PS_OK, PS_ERR_ARGUMENT (a length above the capacity, options out of range),
 * _MEMORY, _LIMIT.
 */
PS_MUST_CHECK ps_result ps_plan_make(ps_plan **plan,
                                     const ps_histogram *histogram,
                                     ps_algorithm algorithm,
                                     const ps_plan_options *options,
                                     ps_error *err);

/* Number of strategies. */
size_t ps_plan_strategies(const ps_plan *plan);

/*
 * Returns the repeat count of strategy `i`, and its `*n` lengths in ascending
 * order.  The plan owns the array.
 */
uint64_t ps_plan_strategy(const ps_plan *plan, size_t i,
                          const uint32_t **lengths, uint32_t *n);

/* Total number of packs, and the maximum number of sequences in a pack. */
uint64_t ps_plan_packs(const ps_plan *plan);
uint32_t ps_plan_max_depth(const ps_plan *plan);

/*
 * Checks that the plan uses every sequence of the histogram exactly once and
 * observes capacity and depth.  PS_OK, PS_ERR_CORRUPT, PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result ps_plan_check(const ps_plan *plan,
                                      const ps_histogram *histogram,
                                      const ps_plan_options *options,
                                      ps_error *err);

void ps_plan_free(ps_plan *plan);

/*
 * Lower bound on the number of packs of any plan with this capacity and depth:
 * the optimum of the LP relaxation (Gilmore and Gomory, 1961) or, if column
 * generation has to stop early, a valid bound below it (Farley, 1990).
 * PS_OK, PS_ERR_ARGUMENT, _MEMORY.
 */
PS_MUST_CHECK ps_result ps_plan_bound(const ps_histogram *histogram,
                                      uint32_t capacity, uint32_t depth,
                                      double *packs, ps_error *err);

/* Number of resources of a pack: tokens, and up to four budgets. */
#define PS_MAX_RESOURCES 5

/* Sequences that use the same amount of each resource. */
typedef struct ps_uses {
    uint64_t uses[PS_MAX_RESOURCES];
    uint64_t count; /* at least 1 */
} ps_uses;

/*
 * Lower bound on the number of packs that hold at most limits[k] of each of the
 * `n_limits` resources, and at most `depth` sequences.  Limits are from 1 to
 * PS_MAX_BUDGET, and no sequence uses more than a limit.
 *
 * alone[k] receives the bound for resource k if the other limits are ignored:
 * that of ps_plan_bound, with uses as lengths.  Uses of a resource whose limit
 * exceeds PS_MAX_CAPACITY are rounded down.  *packs is at least the greatest of
 * these, since it also counts sequences that no other can join.
 * PS_OK, PS_ERR_ARGUMENT, _LIMIT (uses of more than 2^63 - 1 in total),
 * _MEMORY.
 */
PS_MUST_CHECK ps_result ps_plan_bound_uses(const ps_uses *items, size_t n,
                                           const uint64_t *limits,
                                           uint32_t n_limits, uint32_t depth,
                                           double *alone, double *packs,
                                           ps_error *err);

#ifdef __cplusplus
}
#endif

#endif
