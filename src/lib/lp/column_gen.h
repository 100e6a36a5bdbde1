/*
 * column_gen.h - the linear relaxation of packing: how many packs there must
 * be at least, and what strategies come near to that.
 *
 * A strategy is a column: at most `depth` lengths that fit the capacity.
 * The relaxation asks for the least sum of (fractional) repeat counts such
 * that every sequence has a slot; a slot may hold a shorter sequence.
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

/* ---- What a column can be worth (pricing.c) ---- */

typedef struct ps_pricer ps_pricer;

/*
 * From depth 4 on the capacity is divided into at most `max_units`; if they
 * are longer than a token, lengths count as rounded up to units, and the
 * answers are worth less than the best.  NULL without memory.
 */
ps_pricer *ps_pricer_open(const ps_lp_instance *instance, uint32_t max_units);
void ps_pricer_free(ps_pricer *p);

/* Whether the answers are the best that there are. */
bool ps_pricer_is_exact(const ps_pricer *p);

/*
 * The greatest sum of prices that a column can have.  value[i] is that of
 * the i-th of n columns: the best one with length i as its first (at depth
 * 3: its longest); from depth 4 on, the best of those whose halves divide
 * the capacity alike.  No price counts as less than 0.
 */
double ps_pricer_run(ps_pricer *p, const double *price, double *value);

/* Adds the column of value[i], as of the last run, to a list. */
bool ps_pricer_column(ps_pricer *p, uint32_t i, ps_entries *to,
                      ps_column *column);

/* The additions that all runs took. */
double ps_pricer_work(const ps_pricer *p);

/* ---- The relaxation (column_gen.c) ---- */

typedef struct ps_lp ps_lp;

/* Says where a search may stop. */
typedef struct ps_lp_limits {
    double work;         /* additions, about; some 10^9 of them a second */
    double min_yield;  /* packs saved by 10^8 of them, if not solved yet */
    double gap;          /* packs above the bound that are as good as none */
    uint32_t max_units; /* of ps_pricer_open */
} ps_lp_limits;

/* Work that is fair for so many lengths: some tenths of a second to some. */
double ps_lp_fair_work(size_t lengths);

/* Solves it, or comes as near as the limits allow.  PS_ERR_MEMORY. */
ps_result ps_lp_open(ps_lp **lp, const ps_lp_instance *instance,
                     const ps_lp_limits *limits, ps_error *err);
void ps_lp_free(ps_lp *lp);

/* Columns at hand, of the stock: entries of a list. */
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

/* The most that it takes, for any stock of so many lengths. */
uint64_t ps_lp_bytes(uint32_t n, uint32_t capacity, uint32_t depth,
                     uint32_t max_units);

double ps_lp_bound(const ps_lp *lp); /* not above the optimum */
double ps_lp_packs(const ps_lp *lp); /* not below it */

/* The columns, how often they are used, and what lengths are worth. */
ps_basis *ps_lp_basis(ps_lp *lp);

/*
 * What each length is worth at the bound, in packs: no column is worth more
 * than one, and longer is not worth less.
 */
const double *ps_lp_prices(const ps_lp *lp);

/* The work done, as in ps_lp_limits. */
double ps_lp_work(const ps_lp *lp);

#endif
