/*
 * dual_prices.h - what sequences of each length will be worth to packs,
 * learned from those that came.
 *
 * Gilmore and Gomory (1961) price a piece by the dual of the relaxation of
 * cutting stock: at the optimum no pack is worth more than one, and a pack
 * that is worth one is a pack of a best plan.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_DUAL_PRICES_H
#define LIB_DUAL_PRICES_H

#include "packstream.h"
#include "state.h"
#include "units.h"

/* The score of a full pack: prices are parts of it. */
#define PS_SCORE_ONE (INT32_C(1) << 22)

/* Here so that counting is done in line; the rest is dual_prices.c's. */
typedef struct ps_dual_prices {
    uint32_t capacity;
    uint32_t depth;
    uint32_t window_size;
    uint32_t unit; /* tokens */
    uint32_t units;
    double *count;   /* sequences by length in units; older ones fade */
    double *last;    /* prices by length in units, as last chosen */
    double *average; /* of prices over time; those in use */
    double *fresh;   /* prices, while they are learned */
    double *sampled; /* counts, so too */
    uint32_t *lp_length;
    double *lp_count;
    double *row; /* two of a knapsack */
    double total;
    double work;      /* additions so far */
    double last_work; /* of the last solution */
    uint64_t mean; /* length of those counted, in 1/256 token; 0: unknown */
    uint64_t came;
    uint64_t next; /* learn when so many came */
    uint64_t random;
    bool known;  /* prices were learned */
    bool linear; /* they are nearly the lengths' parts of the capacity */
    bool pairs;  /* more than two sequences in a pack gain nothing */
} ps_dual_prices;

/* PS_ERR_MEMORY. */
ps_result ps_dual_prices_open(ps_dual_prices **prices, uint32_t capacity,
                              uint32_t depth, uint32_t window_size,
                              ps_error *err);
void ps_dual_prices_free(ps_dual_prices *prices);

/* The most memory that they take, and while they are learned besides. */
uint64_t ps_dual_prices_bytes(uint32_t capacity);
uint64_t ps_dual_prices_learn_bytes(uint32_t capacity, uint32_t depth);

/* A sequence came.  A full pack says nothing of what others are worth. */
static inline void ps_dual_prices_count(ps_dual_prices *p, uint32_t length)
{
    p->came++;
    if (length == p->capacity)
        return;
    p->count[ps_round_to_units(length, p->unit, p->units)]++;
    p->total++;
}

/* True if it is time to learn. */
static inline bool ps_dual_prices_due(const ps_dual_prices *p)
{
    return p->came >= p->next;
}

/* Learns new prices from the counts.  PS_ERR_MEMORY. */
ps_result ps_dual_prices_learn(ps_dual_prices *prices, ps_error *err);

/*
 * Writes the price of each length 0..capacity, from 0 to a little above
 * PS_SCORE_ONE; it does not fall with the length.
 */
void ps_dual_prices_write(const ps_dual_prices *prices, int32_t *price);

/* What was learned; the load fails if that cannot be. */
void ps_dual_prices_save(const ps_dual_prices *prices, ps_saver *saver);
void ps_dual_prices_load(ps_dual_prices *prices, ps_restorer *restorer);

#endif
