/*
 * prices.h - what sequences of each length will be worth to packs, learned
 * from those that came.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_PRICES_H
#define LIB_PRICES_H

#include "packstream.h"
#include "state.h"

/* Here so that counting is done in line; nobody else looks into it. */
typedef struct ps_prices {
    uint32_t capacity;
    uint32_t depth;
    uint32_t window_size;
    uint32_t unit; /* tokens */
    uint32_t units;
    double *count;   /* by length in units */
    double *worth;   /* of those with a count, as the relaxation says */
    uint32_t *stock; /* their lengths */
    double *stock_count;
    double total;
    uint64_t came;
    uint64_t next; /* to learn when so many have come */
} ps_prices;

/* PS_ERR_MEMORY. */
ps_result ps_prices_open(ps_prices **prices, uint32_t capacity,
                         uint32_t depth, uint32_t window_size,
                         ps_error *err);
void ps_prices_free(ps_prices *prices);

/* The most that they take, and while they are learned besides. */
uint64_t ps_prices_bytes(uint32_t capacity);
uint64_t ps_prices_learn_bytes(uint32_t capacity, uint32_t depth);

/* To the nearest unit, but never none and never more than there are. */
static inline uint32_t ps_prices_units(const ps_prices *p, uint32_t length)
{
    uint32_t u;

    if (p->unit == 1)
        return length;
    u = (length + p->unit / 2) / p->unit;
    if (u == 0)
        return 1;
    return u < p->units ? u : p->units;
}

/* A sequence came.  A full pack says nothing of what others are worth. */
static inline void ps_prices_count(ps_prices *p, uint32_t length)
{
    p->came++;
    if (length == p->capacity)
        return;
    p->count[ps_prices_units(p, length)]++;
    p->total++;
}

/* What was learned so far; the load fails if it makes no sense. */
void ps_prices_save(const ps_prices *prices, ps_saver *saver);
void ps_prices_load(ps_prices *prices, ps_restorer *restorer);

/* True if it is time to learn. */
static inline bool ps_prices_due(const ps_prices *p)
{
    return p->came >= p->next;
}

/*
 * Says whether the depth binds, and if so writes the price of each length
 * 0..capacity: between 0 and PS_WORTH_ONE (worth.h), not falling with the
 * length.  If not, a length is worth its part of the capacity.
 * PS_ERR_MEMORY.
 */
ps_result ps_prices_learn(ps_prices *prices, int32_t *price, bool *binding,
                          ps_error *err);

#endif
