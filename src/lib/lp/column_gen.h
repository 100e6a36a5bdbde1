/*
 * column_gen.h - the LP relaxation of packing: a lower bound on the number of
 * packs, and fractional strategies close to it.
 *
 * SPDX-License-Identifier: MIT
 *
 * Main header of module lp.  A strategy is a column: at most `depth` lengths
 * that fit the capacity.  The relaxation minimises the sum of (fractional)
 * repeat counts such that every sequence has a slot.  A slot can hold a shorter
 * sequence.  The columns are not enumerated but generated:
 *
 *   column_gen    main loop: find columns worth more than a pack at the
 *                 current dual prices, and let them enter the basis
 *   pricing       finds these columns: a knapsack problem
 *   greedy_basis  initial columns
 *   simplex       the basis, its prices, and the pivot step
 *   lu            solve with the basis, replace one of its columns
 *   lu_factor     factor the sparse basis matrix
 *   sparse        lists of entries, columns, matrices
 *   lengths       look up lengths
 *
 * Each file uses only those below it.  The module works on numbers, not on
 * histograms or plans, and uses only base.  Work is counted in additions rather
 * than seconds, so that results depend on the instance alone.
 */

#ifndef LIB_LP_COLUMN_GEN_H
#define LIB_LP_COLUMN_GEN_H

#include "lp/simplex.h"
#include "packstream.h"

/*
 * An instance: `n` >= 1 lengths in ascending order, at most `capacity`, and the
 * possibly fractional number of sequences of each.  1 <= depth <= capacity.
 */
typedef struct ps_lp_instance {
    uint32_t n;             /* number of lengths */
    const uint32_t *length; /* [n], in tokens or units */
    const double *count;    /* [n], sequences */
    uint32_t capacity;      /* in the unit of `length` */
    uint32_t depth;         /* maximum number of sequences per column */
} ps_lp_instance;

typedef struct ps_lp ps_lp;

/* When a search may stop. */
typedef struct ps_lp_limits {
    double work;        /* additions, about 10^9 per second */
    double min_yield;   /* packs saved per 10^8 additions; stop below it */
    double gap;         /* packs above the bound that count as solved */
    uint32_t max_units; /* see ps_pricer_init */
} ps_lp_limits;

/* A reasonable amount of work for `lengths` lengths: 0.2 to 4 seconds. */
double ps_lp_fair_work(size_t lengths);

/* Solves the instance as far as the limits allow.  PS_OK, PS_ERR_MEMORY. */
ps_result ps_lp_open(ps_lp **lp, const ps_lp_instance *instance,
                     const ps_lp_limits *limits, ps_error *err);
void ps_lp_free(ps_lp *lp);

/* Existing columns for an instance; their entries are in one list. */
typedef struct ps_lp_pool {
    ps_entries list;
    ps_column *column;
    size_t n; /* number of columns */
} ps_lp_pool;

/*
 * Continues after ps_lp_open with additional work, letting columns of a pool
 * enter before others are generated.  PS_OK, PS_ERR_MEMORY.
 */
ps_result ps_lp_improve(ps_lp *lp, const ps_lp_limits *limits,
                        const ps_lp_pool *pool, ps_error *err);

/* Upper bound on the memory for any instance with `n` lengths, in bytes. */
uint64_t ps_lp_bytes(uint32_t n, uint32_t capacity, uint32_t depth,
                     uint32_t max_units);

/* Lower bound on the optimum, packs. */
double ps_lp_bound(const ps_lp *lp);

/*
 * Returns the columns, their repeat counts and the prices.  The sum of the
 * counts is an upper bound on the optimum.
 */
ps_basis *ps_lp_basis(ps_lp *lp);

/*
 * Value of each length at the bound, in packs.  No column is worth more than 1,
 * and values do not decrease with length.
 */
const double *ps_lp_prices(const ps_lp *lp);

/* Work done so far, in the units of ps_lp_limits. */
double ps_lp_work(const ps_lp *lp);

#endif
