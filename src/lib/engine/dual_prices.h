/*
 * dual_prices.h - value of each length to future packs.
 *
 * Gilmore and Gomory (1961) price pieces by the dual variables of the LP
 * relaxation of cutting stock.  At the optimum no pack is worth more than 1,
 * and packs worth exactly 1 belong to an optimal plan.  The demand priced here
 * consists of the window and the sequences expected before it would be empty.
 * Prices therefore follow the window: overrepresented lengths get expensive and
 * are packed sooner.  Re-solving for the remaining demand is known to lose at
 * most a constant against a plan that knows the whole stream (Jasin and Kumar
 * 2012; Banerjee and Freund 2020 for bin packing).
 *
 * Solving the LP for every pack would be too slow.  Several solutions are kept
 * (price_cuts.h), and the prices in use are a mean of the solutions that are
 * nearly optimal for the current demand.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_DUAL_PRICES_H
#define LIB_ENGINE_DUAL_PRICES_H

#include "base/serial.h"
#include "engine/price_cuts.h"
#include "engine/units.h"
#include "packstream.h"

/* Score of a full pack, whose price is 1. */
#define PS_SCORE_ONE (INT32_C(1) << 22)

/* Public for inline functions; the policy reads some members. */
typedef struct ps_dual_prices {
    uint32_t capacity;
    uint32_t depth;
    uint32_t window_size;
    ps_units units;     /* units of length, the index of the arrays */
    bool few;           /* units are fine: few lengths have arrived so far */
    uint32_t max_depth; /* depth; `depth` is at most the number of units */
    double *count;      /* arrivals, older ones with less weight */
    double *recent;     /* sequences since the variation was computed */
    double *in_window;  /* sequences in the window */
    double *demand;     /* in_window plus expected sequences */
    double *price;      /* in use: a mean of cuts, 0 to 1 */
    double *size_part;  /* added to the price in proportion to length */
    int32_t *scaled;    /* price and size_part, as scores */
    ps_price_cuts cuts;
    double near;         /* cuts less than this fraction below the highest are
                            used */
    double total;        /* sum of `count` */
    double recent_total; /* sum of `recent` */
    double variation;    /* of windows, as a multiple of random variation */
    double work;         /* additions done for solving */
    uint64_t mean;       /* length, in 1/256 token; 0: unknown */
    uint64_t arrivals;   /* sequences */
    uint64_t next;       /* number of arrivals at which to solve again */
    uint64_t interval;   /* arrivals between two solutions */
    bool known;          /* there is a solved cut */
    bool linear;         /* prices are nearly proportional to length */
} ps_dual_prices;

/* Sets mem->failed if memory runs out. */
void ps_dual_prices_init(ps_dual_prices *prices, uint32_t capacity,
                         uint32_t depth, uint32_t window_size, ps_mem *mem);
void ps_dual_prices_destroy(ps_dual_prices *prices);

/* Upper bound on the additional memory of ps_dual_prices_learn, in bytes. */
uint64_t ps_dual_prices_learn_bytes(uint32_t capacity, uint32_t depth);

/*
 * Counts the sequences of a histogram, with lengths up to the capacity, as if
 * they had arrived, scaled down to at most 64 windows.
 */
void ps_dual_prices_expect(ps_dual_prices *prices,
                           const ps_histogram *histogram);

/* Counts an arrival.  A sequence that fills a pack affects no other price. */
static inline void ps_dual_prices_admit(ps_dual_prices *p, uint32_t length)
{
    uint32_t u;

    p->arrivals++;
    if (length == p->capacity)
        return;
    u = ps_units_round(&p->units, length);
    p->count[u]++;
    p->recent[u]++;
    p->in_window[u]++;
    p->total++;
    p->recent_total++;
}

/* Counts a sequence that left the window. */
static inline void ps_dual_prices_take(ps_dual_prices *p, uint32_t length)
{
    if (length < p->capacity)
        p->in_window[ps_units_round(&p->units, length)]--;
}

/* Counts sequences of a length that are in the window, after loading. */
static inline void ps_dual_prices_recount(ps_dual_prices *p, uint32_t length,
                                          uint32_t sequences)
{
    if (length < p->capacity)
        p->in_window[ps_units_round(&p->units, length)] += sequences;
}

/*
 * While few distinct lengths arrive, units are fine, so that sums of lengths
 * are exact.  Once there are many, this changes to coarse units and returns
 * true; the caller must then count the window again and call
 * ps_dual_prices_learn.
 */
bool ps_dual_prices_coarsen(ps_dual_prices *prices);

/* Solves for the current demand and keeps the cut.  PS_OK, PS_ERR_MEMORY. */
ps_result ps_dual_prices_learn(ps_dual_prices *prices, ps_error *err);

/*
 * Sets the prices from the cuts that are highest for the current demand.
 * Returns true once per window of arrivals.
 */
bool ps_dual_prices_follow(ps_dual_prices *prices);

/*
 * Price of a length up to the capacity, from 0 to PS_SCORE_ONE.  It never
 * decreases with the length.
 */
static inline int32_t ps_dual_price_of(const ps_dual_prices *p,
                                       uint32_t length)
{
    uint32_t u = ps_units_in(&p->units, length);
    uint32_t part = length - u * p->units.size;
    int64_t parts = (int64_t)(p->units.inverse >> 24) * part; /* 2^24 a unit */
    int32_t price = p->scaled[u];

    return price + (int32_t)((p->scaled[u + 1] - price) * parts >> 24);
}

/*
 * Save and load everything except the counts of the window.  Loading sets
 * restorer->failed if the numbers are invalid.
 */
void ps_dual_prices_save(const ps_dual_prices *prices, ps_saver *saver);
void ps_dual_prices_load(ps_dual_prices *prices, ps_restorer *restorer);

#endif
