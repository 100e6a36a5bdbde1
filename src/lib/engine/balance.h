/*
 * balance.h - whether the window has more or less of short, middle and long
 * sequences than the stream.
 *
 * Left to chance, the mixture of lengths in the window drifts away from that
 * of the stream, until it is full of what does not fit together.  A small
 * weight on lengths that are there too often steers back.
 *
 * Lengths are told apart by a few knots at quantiles of the stream; between
 * two knots a sequence counts for both, in proportion.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_BALANCE_H
#define LIB_ENGINE_BALANCE_H

#include <stdbool.h>

#include "base/mem_bound.h"
#include "base/serial.h"
#include "engine/units.h"
#include "packstream.h"

#define PS_BALANCE_KNOTS 8

/* Parts of a sequence that count for a knot. */
#define PS_BALANCE_WHOLE 256

typedef struct ps_balance {
    uint32_t knot[PS_BALANCE_KNOTS]; /* units of length, ascending */
    uint32_t units; /* of the capacity */
    uint16_t *place; /* by unit: the knot below it, and parts above that */
    int64_t in_window[PS_BALANCE_KNOTS]; /* parts */
    int64_t arrived[PS_BALANCE_KNOTS];   /* parts since the last weighing */
    int64_t arrivals;                    /* sequences since then */
    int64_t share[PS_BALANCE_KNOTS];     /* of the stream, times 2^30 */
    int32_t weight[PS_BALANCE_KNOTS];    /* of a sequence there, */
    int32_t *by_unit;                    /* and of one of each length */
    uint32_t window_size;
} ps_balance;

/* Which knot is at or below a unit, and how far it is on to the next. */
static inline uint32_t ps_balance_find(const ps_balance *b, uint32_t unit,
                                       uint32_t *part)
{
    uint32_t place = b->place[unit];

    *part = place % (2 * PS_BALANCE_WHOLE);
    return place / (2 * PS_BALANCE_WHOLE);
}

/* To be added to the score of a sequence. */
static inline int32_t ps_balance_of(const ps_balance *b, uint32_t unit)
{
    return b->by_unit[unit];
}

/* A sequence came to the window, or left it. */
static inline void ps_balance_admit(ps_balance *b, uint32_t unit)
{
    uint32_t part;
    uint32_t i = ps_balance_find(b, unit, &part);

    b->in_window[i] += PS_BALANCE_WHOLE - part;
    b->in_window[i + 1] += part;
    b->arrived[i] += PS_BALANCE_WHOLE - part;
    b->arrived[i + 1] += part;
    b->arrivals++;
}

static inline void ps_balance_take(ps_balance *b, uint32_t unit)
{
    uint32_t part;
    uint32_t i = ps_balance_find(b, unit, &part);

    b->in_window[i] -= PS_BALANCE_WHOLE - part;
    b->in_window[i + 1] -= part;
}

/*
 * A length is told in units, rounded as ps_units_round does; the capacity is
 * so many.  Until something is known no length has a weight.  Sets
 * mem->failed without memory.
 */
void ps_balance_init(ps_balance *b, uint32_t units, uint32_t window_size,
                     ps_mem *mem);
void ps_balance_destroy(ps_balance *b);

/*
 * New knots, for a stream with these counts by unit, of which there are so
 * many, and a window with so many of each.
 */
void ps_balance_learn(ps_balance *b, uint32_t units, const double *count,
                      const double *in_window);

/* New weights, for a window of so many; `strong` ones are greater. */
void ps_balance_weigh(ps_balance *b, uint32_t sequences, bool strong);

/* All but what is in the window, which the load is told, as in learning. */
void ps_balance_save(const ps_balance *b, ps_saver *saver);
void ps_balance_load(ps_balance *b, uint32_t units, const double *in_window,
                     ps_restorer *restorer);

#endif
