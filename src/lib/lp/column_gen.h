/*
 * column_gen.h - the linear relaxation of packing: how many packs there must
 * be at least, and what strategies come near to that.
 *
 * This is the entry to the room `lp`.  A strategy is a column: at most `depth`
 * lengths that fit the capacity.  The relaxation asks for the least sum of
 * (fractional) repeat counts such that every sequence has a slot; a slot may
 * hold a shorter sequence.  Nobody lists the columns; they are generated:
 *
 *     column_gen    the loop: find columns that are worth more than a pack at
 *                   the dual prices of the moment, and let them enter
 *     pricing       finds them: a knapsack
 *     greedy_basis  the columns to begin with, by greed
 *     simplex       the basis, the prices, and the step that changes them
 *     lu            solves with the basis, and replaces a column of it
 *     lu_factor     factors the basis, which is sparse
 *     sparse        lists of entries, columns, matrices
 *     lengths       looks up lengths
 *
 * Each may call those below it.  The room knows numbers only, no histograms
 * and no plans; it uses base and nothing else.  Work is counted in additions,
 * not in seconds, so that the result depends on the instance alone.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_LP_COLUMN_GEN_H
#define LIB_LP_COLUMN_GEN_H

#include "lp/simplex.h"
#include "packstream.h"

/*
 * What is to be packed: `n` >= 1 lengths, ascending, none above capacity,
 * and how many there are of each, which need not be whole.  Depth is at
 * least 1 and at most the capacity.
 */
typedef struct ps_lp_instance {
    uint32_t n;
    const uint32_t *length;
    const double *count;
    uint32_t capacity;
    uint32_t depth;
} ps_lp_instance;

typedef struct ps_lp ps_lp;

/* Where a search may stop. */
typedef struct ps_lp_limits {
    double work;        /* additions, about; some 10^9 of them a second */
    double min_yield;   /* packs saved by 10^8 of them, if not solved yet */
    double gap;         /* packs above the bound that are as good as none */
    uint32_t max_units; /* of ps_pricer_init */
} ps_lp_limits;

/* Work that is fair for so many lengths: some tenths of a second to some. */
double ps_lp_fair_work(size_t lengths);

/* Solves it, or comes as near as the limits allow.  PS_ERR_MEMORY. */
ps_result ps_lp_open(ps_lp **lp, const ps_lp_instance *instance,
                     const ps_lp_limits *limits, ps_error *err);
void ps_lp_free(ps_lp *lp);

/* Columns at hand, of the instance: entries of a list. */
typedef struct ps_lp_pool {
    ps_entries list;
    ps_column *column;
    size_t n;
} ps_lp_pool;

/*
 * Goes on from where ps_lp_open stopped, for so much work more, and lets
 * columns of a pool enter before others are sought.  PS_ERR_MEMORY.
 */
ps_result ps_lp_improve(ps_lp *lp, const ps_lp_limits *limits,
                        const ps_lp_pool *pool, ps_error *err);

/* The most that it takes, for any instance of so many lengths. */
uint64_t ps_lp_bytes(uint32_t n, uint32_t capacity, uint32_t depth,
                     uint32_t max_units);

/* Packs: not above the optimum. */
double ps_lp_bound(const ps_lp *lp);

/*
 * The columns, how often they are used, and what lengths are worth; its packs
 * are not below the optimum.
 */
ps_basis *ps_lp_basis(ps_lp *lp);

/*
 * What each length is worth at the bound, in packs: no column is worth more
 * than one, and longer is not worth less.
 */
const double *ps_lp_prices(const ps_lp *lp);

/* The work done, as in ps_lp_limits. */
double ps_lp_work(const ps_lp *lp);

#endif
