/*
 * balance.h - keep the mixture of lengths in the window close to the stream's.
 *
 * Left to chance, the window drifts away from the stream's mixture until it is
 * full of lengths that do not fit together.  A small weight on overrepresented
 * lengths corrects this.
 *
 * Lengths are represented by a few knots at quantiles of the stream.  A
 * sequence between two knots counts towards both, by linear interpolation.
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

/* Number of parts into which a sequence between two knots is divided. */
#define PS_BALANCE_WHOLE 256

typedef struct ps_length_balance {
    uint32_t knot[PS_BALANCE_KNOTS]; /* units of length, ascending */
    uint32_t units;                  /* of the capacity */
    uint16_t *place; /* by unit: the knot at or below it, and the parts that
                        count towards the next knot */
    int64_t in_window[PS_BALANCE_KNOTS]; /* parts */
    int64_t arrived[PS_BALANCE_KNOTS];   /* parts since the last weighing */
    int64_t arrivals;                    /* sequences since then */
    int64_t share[PS_BALANCE_KNOTS];     /* of the stream, times 2^30 */
    int32_t weight[PS_BALANCE_KNOTS];    /* added to scores at each knot */
    int32_t *by_unit;                    /* the same for each length in units */
    uint32_t window_size;
} ps_length_balance;

/* Returns the knot at or below a unit; *part counts towards the next one. */
static inline uint32_t ps_balance_find(const ps_length_balance *b,
                                       uint32_t unit, uint32_t *part)
{
    uint32_t place = b->place[unit];

    *part = place % (2 * PS_BALANCE_WHOLE);
    return place / (2 * PS_BALANCE_WHOLE);
}

/* Weight to add to the score of a sequence. */
static inline int32_t ps_balance_of(const ps_length_balance *b, uint32_t unit)
{
    return b->by_unit[unit];
}

/* Count a sequence that entered or left the window. */
static inline void ps_balance_admit(ps_length_balance *b, uint32_t unit)
{
    uint32_t part;
    uint32_t i = ps_balance_find(b, unit, &part);

    b->in_window[i] += PS_BALANCE_WHOLE - part;
    b->in_window[i + 1] += part;
    b->arrived[i] += PS_BALANCE_WHOLE - part;
    b->arrived[i + 1] += part;
    b->arrivals++;
}

static inline void ps_balance_take(ps_length_balance *b, uint32_t unit)
{
    uint32_t part;
    uint32_t i = ps_balance_find(b, unit, &part);

    b->in_window[i] -= PS_BALANCE_WHOLE - part;
    b->in_window[i + 1] -= part;
}

/*
 * Initialises *b for a capacity of `units` units.  Lengths are rounded to units
 * by ps_units_round.  All weights are 0 at first.  Sets mem->failed if memory
 * runs out.
 */
void ps_balance_init(ps_length_balance *b, uint32_t units, uint32_t window_size,
                     ps_mem *mem);
void ps_balance_destroy(ps_length_balance *b);

/*
 * Sets new knots from the stream's counts by unit, and counts the window again.
 */
void ps_balance_learn(ps_length_balance *b, uint32_t units, const double *count,
                      const double *in_window);

/* Sets new weights for a window of `sequences`, greater if `strong`. */
void ps_balance_weigh(ps_length_balance *b, uint32_t sequences, bool strong);

/* Save and load everything except the counts of the window. */
void ps_balance_save(const ps_length_balance *b, ps_saver *saver);
void ps_balance_load(ps_length_balance *b, uint32_t units,
                     const double *in_window, ps_restorer *restorer);

#endif
