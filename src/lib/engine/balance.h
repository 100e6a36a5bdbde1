/*
 * balance.h - whether the window holds more or less of short, middle and
 * long sequences than the stream brings.
 *
 * What leaves a window at random walks away from the mixture that comes in,
 * and is lost when the window is full of what does not fit together.  A
 * small weight on what is there too often steers back.
 *
 * Lengths are told apart by a few knots at quantiles of the stream; between
 * two knots a sequence counts for both, in proportion.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_BALANCE_H
#define LIB_ENGINE_BALANCE_H

#include <stdbool.h>

#include "base/serial.h"
#include "engine/units.h"
#include "packstream.h"

#define PS_BALANCE_KNOTS 8

/* Parts of a sequence that count for a knot. */
#define PS_BALANCE_WHOLE 256

typedef struct ps_balance {
    uint32_t knot[PS_BALANCE_KNOTS];   /* units of length, ascending */
    uint32_t capacity;
    ps_units units;
    uint16_t *place; /* by length: the knot below it, and parts above that */
    int64_t held[PS_BALANCE_KNOTS];    /* parts in the window */
    int64_t came[PS_BALANCE_KNOTS];    /* since the last ps_balance_weigh */
    int64_t came_all;                  /* sequences, so too */
    int64_t share[PS_BALANCE_KNOTS];   /* of those that come, times 2^30 */
    int32_t weight[PS_BALANCE_KNOTS];  /* of a sequence there */
    uint32_t window_size;
} ps_balance;

/* Which knot is at or below a length, and how far it is on to the next. */
static inline uint32_t ps_balance_find(const ps_balance *b, uint32_t length,
                                       uint32_t *part)
{
    uint32_t place = b->place[length];

    *part = place % (2 * PS_BALANCE_WHOLE);
    return place / (2 * PS_BALANCE_WHOLE);
}

/* To be added to the score of a sequence. */
static inline int32_t ps_balance_of(const ps_balance *b, uint32_t length)
{
    uint32_t part;
    uint32_t i = ps_balance_find(b, length, &part);

    return b->weight[i] + (int32_t)((int64_t)(b->weight[i + 1] -
                                              b->weight[i]) *
                                    part / PS_BALANCE_WHOLE);
}

/* A sequence came, or left. */
static inline void ps_balance_admit(ps_balance *b, uint32_t length)
{
    uint32_t part;
    uint32_t i = ps_balance_find(b, length, &part);

    b->held[i] += PS_BALANCE_WHOLE - part;
    b->held[i + 1] += part;
    b->came[i] += PS_BALANCE_WHOLE - part;
    b->came[i + 1] += part;
    b->came_all++;
}

static inline void ps_balance_take(ps_balance *b, uint32_t length)
{
    uint32_t part;
    uint32_t i = ps_balance_find(b, length, &part);

    b->held[i] -= PS_BALANCE_WHOLE - part;
    b->held[i + 1] -= part;
}

/*
 * Until something is known no length has a weight.  The stream is
 * counted in units.  PS_ERR_MEMORY.
 */
ps_result ps_balance_open(ps_balance *b, uint32_t capacity,
                          const ps_units *units, uint32_t window_size,
                          ps_error *err);
void ps_balance_close(ps_balance *b);

/* The most memory that it takes. */
uint64_t ps_balance_bytes(uint32_t capacity);

/*
 * New knots, for a stream with these counts by length in units, rounded as
 * ps_units_round does; the window must be counted anew with
 * ps_balance_hold.
 */
void ps_balance_learn(ps_balance *b, const double *count);
void ps_balance_hold(ps_balance *b, uint32_t length, uint32_t sequences);

/* New weights, for a window of so many; `strong` ones are greater. */
void ps_balance_weigh(ps_balance *b, uint32_t sequences, bool strong);

/* All but what is held, which follows from the window. */
void ps_balance_save(const ps_balance *b, ps_saver *saver);
void ps_balance_load(ps_balance *b, ps_restorer *restorer);

#endif
