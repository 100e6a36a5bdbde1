/*
 * pricing.h - find the most valuable columns at given prices.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_LP_PRICING_H
#define LIB_LP_PRICING_H

#include "lp/column_gen.h"

#define PS_PRICER_TABLES 64 /* 2 per bit of the depth */

/* Maximum value of up to some number of sequences, by capacity. */
typedef struct ps_price_table {
    double *best;    /* [capacity + 1] */
    uint32_t *split; /* part of c for `a`; NONE until computed */
    uint32_t a;      /* its two parts; unset for the first table */
    uint32_t b;
} ps_price_table;

/* A point where a table increases, and its new value. */
typedef struct ps_price_rise {
    uint32_t at; /* capacity in units */
    double best; /* value of the table from there on */
} ps_price_rise;

typedef struct ps_pricer {
    const ps_lp_instance *instance;
    const double *price; /* [n], of the last run; not owned */
    uint32_t unit;       /* tokens; above 1, prices are inexact */
    uint32_t capacity;   /* in units, like the weights */
    uint32_t *weight;    /* [n], of each length */
    uint32_t *item;      /* by capacity: the length that attains F1 */
    ps_price_rise *rises;
    size_t n_rises;  /* entries of `rises` */
    double *best;    /* of all tables */
    uint32_t *split; /* of all tables */
    bool any;        /* depth is not a constraint, and more than 3 fit */
    ps_price_table tables[PS_PRICER_TABLES];
    uint32_t n_tables; /* 1 to PS_PRICER_TABLES */
    uint32_t half[2];  /* from depth 4: tables for the two halves */
    /*
     * [n], per column: the capacity of its first half; at depth 3, the capacity
     * of the last of the three lengths.
     */
    uint32_t *part;
    uint32_t *worth; /* if inexact: most valuable length up to each */
    double work;     /* additions in all runs */
} ps_pricer;

/*
 * Initialises a pricer.  From depth 4 on the capacity is divided into at most
 * `max_units` units.  If a unit exceeds a token, lengths are rounded up to
 * units, and the columns found can be worth less than the best.  Sets
 * mem->failed if out of memory.
 */
void ps_pricer_init(ps_pricer *p, const ps_lp_instance *instance,
                    uint32_t max_units, ps_mem *mem);
void ps_pricer_destroy(ps_pricer *p);

/* Upper bound on the memory for any instance with `n` lengths, in bytes. */
uint64_t ps_pricer_bytes(uint32_t n, uint32_t capacity, uint32_t depth,
                         uint32_t max_units);

/*
 * Returns the maximum value of a column. value[i] is the value of column i: the
 * best one that contains length i (at depth 3 as its longest), or from depth 4
 * on, unless depth is not a constraint, the best in the i-th range of splits.
 * Negative prices count as 0.
 */
double ps_pricer_run(ps_pricer *p, const double *price, double *value);

/*
 * Appends the column of value[i] in the last run to a list.  False if out of
 * memory.
 */
bool ps_pricer_column(ps_pricer *p, uint32_t i, ps_entries *to,
                      ps_column *column);

#endif
