/*
 * pricing.h - the columns that are worth most at given prices.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_LP_PRICING_H
#define LIB_LP_PRICING_H

#include "lp/column_gen.h"

#define PS_PRICER_TABLES 64 /* 2 for each bit of a depth */

/* What a number of sequences, at most, are worth by capacity. */
typedef struct ps_price_table {
    double *best;
    uint32_t *split; /* what of it goes to `a`; none until it is sought */
    uint32_t a;      /* the tables that it is made of; the first has none */
    uint32_t b;
} ps_price_table;

/* Where a table rises: place and value. */
typedef struct ps_price_rise {
    uint32_t at;
    double best;
} ps_price_rise;

typedef struct ps_pricer {
    const ps_lp_instance *instance;
    const double *price;
    uint32_t unit;     /* tokens; if more than one, all this is inexact */
    uint32_t capacity; /* in units, as what follows */
    uint32_t *weight;  /* of each length */
    uint32_t *item;    /* by capacity: the length worth F1, or none */
    ps_price_rise *rises;
    size_t n_rises;
    double *best;    /* of all tables, as is */
    uint32_t *split; /* this */
    bool any;        /* depth is no limit, and there are more than 3 places */
    ps_price_table tables[PS_PRICER_TABLES];
    uint32_t n_tables;
    uint32_t half[2]; /* from depth 4 on: the tables for halves of it */
    /*
     * Of each column: the capacity for its first half; at depth 3, for the
     * last of the three.
     */
    uint32_t *part;
    uint32_t *worth; /* inexact: of the lengths up to i the one worth most */
    double work;     /* the additions that all runs took */
} ps_pricer;

/*
 * From depth 4 on the capacity is divided into at most `max_units`; if they
 * are longer than a token, lengths count as rounded up to units, and the
 * answers are worth less than the best.  Sets mem->failed without memory.
 */
void ps_pricer_init(ps_pricer *p, const ps_lp_instance *instance,
                    uint32_t max_units, ps_mem *mem);
void ps_pricer_destroy(ps_pricer *p);

/* The most that it takes, for any instance of so many lengths. */
uint64_t ps_pricer_bytes(uint32_t n, uint32_t capacity, uint32_t depth,
                         uint32_t max_units);

/*
 * The greatest sum of prices that a column can have.  value[i] is that of
 * the i-th of n columns: the best one that has length i (at depth 3: as its
 * longest); from depth 4 on, if depth is a limit, the best of those whose
 * halves divide the capacity alike.  No price counts as less than 0.
 */
double ps_pricer_run(ps_pricer *p, const double *price, double *value);

/* Adds the column of value[i], as of the last run, to a list. */
bool ps_pricer_column(ps_pricer *p, uint32_t i, ps_entries *to,
                      ps_column *column);

#endif
