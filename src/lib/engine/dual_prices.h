/*
 * dual_prices.h - what sequences of each length are worth to packs that are
 * still to come.
 *
 * Gilmore and Gomory (1961) price a piece by the dual of the relaxation of
 * cutting stock: at the optimum no pack is worth more than one, and a pack
 * that is worth one is a pack of a best plan.  The demand that is priced here
 * is the window, and the sequences that are expected before that is empty.
 * So prices answer to the window: lengths that it has too much of become
 * dear, and leave sooner.  Solving again for what is left is known to lose no
 * more than a constant to a plan that knows the whole stream (Jasin and Kumar
 * 2012; Banerjee and Freund 2020 for bin packing).
 *
 * Solving takes too long to do it for each pack.  Some solutions are kept
 * (price_cuts.h), and the prices in use are a mean of those that are nearly
 * right for the demand of the moment.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_DUAL_PRICES_H
#define LIB_ENGINE_DUAL_PRICES_H

#include "base/serial.h"
#include "engine/price_cuts.h"
#include "engine/units.h"
#include "packstream.h"

/* The score of a full pack: prices are parts of it. */
#define PS_SCORE_ONE (INT32_C(1) << 22)

/* Here so that counting can be inline; the policy reads some members. */
typedef struct ps_dual_prices {
    uint32_t capacity;
    uint32_t depth;
    uint32_t window_size;
    ps_units units;    /* arrays are by length in these */
    bool few;          /* they are fine, as few lengths arrived so far */
    uint32_t max_depth; /* the depth, in any units */
    double *count;     /* sequences that arrived; older ones fade */
    double *recent;    /* those since the variation was worked out */
    double *in_window; /* those in the window */
    double *demand;    /* those, and expected ones */
    double *price;     /* those in use: a mean of cuts, from 0 to 1 */
    double *size_part; /* what is added to them for size */
    int32_t *scaled;   /* the two together: ps_dual_price_of */
    ps_price_cuts cuts;
    double near;  /* a cut counts that is below the highest by this part */
    double total; /* of count */
    double recent_total;
    double variation;  /* of windows, as a multiple of what chance explains */
    double work;       /* additions so far */
    uint64_t mean;     /* length, in 1/256 token; 0: unknown */
    uint64_t arrivals; /* sequences */
    uint64_t next;     /* learn when so many arrived */
    uint64_t interval; /* records */
    bool known;        /* there is a cut that was learned */
    bool linear;       /* they are nearly the lengths' parts of the capacity */
} ps_dual_prices;

/* Sets mem->failed without memory. */
void ps_dual_prices_init(ps_dual_prices *prices, uint32_t capacity,
                         uint32_t depth, uint32_t window_size, ps_mem *mem);
void ps_dual_prices_destroy(ps_dual_prices *prices);

/* The most memory that they take while they are learned besides. */
uint64_t ps_dual_prices_learn_bytes(uint32_t capacity, uint32_t depth);

/*
 * Counts the sequences of a histogram, of lengths up to the capacity, as if
 * they had arrived, but as no more than 64 windows of them.
 */
void ps_dual_prices_expect(ps_dual_prices *prices,
                           const ps_histogram *histogram);

/* A sequence arrived.  A full pack says nothing of what others are worth. */
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

/* A sequence left the window. */
static inline void ps_dual_prices_take(ps_dual_prices *p, uint32_t length)
{
    if (length < p->capacity)
        p->in_window[ps_units_round(&p->units, length)]--;
}

/* Counts so many sequences of a length in the window, after a load. */
static inline void ps_dual_prices_recount(ps_dual_prices *p, uint32_t length,
                                          uint32_t sequences)
{
    if (length < p->capacity)
        p->in_window[ps_units_round(&p->units, length)] += sequences;
}

/*
 * Lengths are counted in fine units while few different ones arrive, which
 * makes sums of them exact.  Changes to coarse units once there are many, and
 * returns true: the caller counts the window again, and learns.
 */
bool ps_dual_prices_coarsen(ps_dual_prices *prices);

/* Learns a cut for the window and what is expected.  PS_ERR_MEMORY. */
ps_result ps_dual_prices_learn(ps_dual_prices *prices, ps_error *err);

/*
 * Takes the prices of the cuts that are highest for that, of those known.
 * True once in a window of the stream: this call completed one.
 */
bool ps_dual_prices_follow(ps_dual_prices *prices);

/*
 * The price of a length up to the capacity, from 0 to PS_SCORE_ONE; it does
 * not fall with the length.
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
 * All but what is in the window, which is counted after the load.  The load
 * fails if it cannot be what was saved.
 */
void ps_dual_prices_save(const ps_dual_prices *prices, ps_saver *saver);
void ps_dual_prices_load(ps_dual_prices *prices, ps_restorer *restorer);

#endif
