/*
 * score.h - what each sequence in the window is worth to the next pack.
 *
 * The score of a length is the price of its sequences (dual_prices.h), with a
 * little for balance, if the window has too many of them (balance.h), and a
 * little for the age of the oldest.  Scores stand in tables by length; where
 * the capacity is large, in one by units of length too, for the value
 * function (value.h).
 *
 * While a pack is built, sequences are placed in it, which may be undone.
 * When the last one of a length is placed, its score is taken out of the
 * tables.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_SCORE_H
#define LIB_ENGINE_SCORE_H

#include "engine/balance.h"
#include "engine/dual_prices.h"
#include "engine/window.h"

/* Less than any score and any sum of scores. */
#define PS_SCORE_NONE (-(INT32_C(1) << 29))

/* False for NONE, also where other scores were added to it. */
static inline bool ps_score_exists(int32_t score)
{
    return score > PS_SCORE_NONE / 2;
}

/* Here so that updates can be inline; the policy reads some members. */
typedef struct ps_score {
    const ps_window *window;
    const ps_dual_prices *prices;
    uint32_t capacity;
    ps_units units;     /* those of the prices */
    int32_t *score;     /* by length; or NONE */
    int32_t *reversed;  /* the same by capacity - length */
    int32_t *best;      /* by unit: the best of its lengths */
    int32_t *by_unit;   /* where that is, unless it is `score` */
    uint32_t *placed;   /* by length */
    ps_balance balance;
    uint64_t learned; /* arrivals when the balance was; 0: it was not yet */
    uint64_t epoch;   /* age is counted up to here */
    uint32_t span;    /* sequences that the window had then, */
    uint64_t max_age; /* a multiple of them: more is worth no more, */
    uint64_t step;    /* and a record of age, times 2^32 */
} ps_score;

/*
 * At first a length is worth its part of the capacity.  Sets mem->failed
 * without memory.
 */
void ps_score_init(ps_score *score, const ps_window *window,
                   const ps_dual_prices *prices, ps_mem *mem);
void ps_score_destroy(ps_score *score);

/* Learns the balance anew if much arrived since the last time. */
void ps_score_learn(ps_score *score);

/* The prices count in other units: the balance is to be learned again. */
void ps_score_forget(ps_score *score);

/*
 * Scores all lengths anew, at a time by the clock of the window, of which a
 * full one has `span` sequences.
 */
void ps_score_refresh(ps_score *score, uint64_t now, uint32_t span);

/*
 * What does not follow from the window and the prices; both are loaded
 * before.  The load fails if it cannot be what was saved.
 */
void ps_score_save(const ps_score *score, ps_saver *saver);
void ps_score_load(ps_score *score, ps_restorer *restorer);

/* The length with the best score in a unit, or 0, whose score is NONE. */
uint32_t ps_score_best_in(const ps_score *score, uint32_t unit);

static inline void ps_score_set(ps_score *s, uint32_t length, int32_t score)
{
    int32_t before = s->score[length];
    uint32_t u;

    s->score[length] = score;
    s->reversed[s->capacity - length] = score;
    if (s->units.size == 1)
        return;
    u = ps_units_round(&s->units, length);
    if (score >= s->best[u])
        s->best[u] = score;
    else if (before == s->best[u])
        s->best[u] = s->score[ps_score_best_in(s, u)];
}

/* The score of a length of which the window has a sequence. */
static inline int32_t ps_score_of(const ps_score *s, uint32_t length)
{
    uint32_t oldest = s->window->queues[length].first;
    uint64_t time = s->window->slots[oldest].time;
    uint64_t age = s->epoch > time ? s->epoch - time : 0;

    age = age < s->max_age ? age : s->max_age;
    return ps_dual_price_of(s->prices, length) +
           ps_balance_of(&s->balance,
                         ps_units_round(&s->prices->units, length)) +
           (int32_t)(age * s->step >> 32);
}

/* Sequences of a length that are in the window and not placed. */
static inline uint32_t ps_score_left(const ps_score *s, uint32_t length)
{
    return s->window->queues[length].count - s->placed[length];
}

/*
 * To be called when the window has admitted a sequence, or one was taken out,
 * with nothing placed.  Those that fill a pack alone are no part of any
 * balance.
 */
static inline void ps_score_admit(ps_score *s, uint32_t length)
{
    if (length < s->capacity)
        ps_balance_admit(&s->balance,
                         ps_units_round(&s->prices->units, length));
    if (s->window->queues[length].count == 1)
        ps_score_set(s, length, ps_score_of(s, length));
}

static inline void ps_score_take(ps_score *s, uint32_t length)
{
    if (length < s->capacity)
        ps_balance_take(&s->balance,
                        ps_units_round(&s->prices->units, length));
    ps_score_set(s, length,
                 s->window->queues[length].count > 0 ? ps_score_of(s, length)
                                                     : PS_SCORE_NONE);
}

/* Places a sequence of a length of which one is left; or takes it back. */
static inline void ps_score_place(ps_score *s, uint32_t length)
{
    s->placed[length]++;
    if (ps_score_left(s, length) == 0)
        ps_score_set(s, length, PS_SCORE_NONE);
}

static inline void ps_score_unplace(ps_score *s, uint32_t length)
{
    if (ps_score_left(s, length) == 0)
        ps_score_set(s, length, ps_score_of(s, length));
    s->placed[length]--;
}

#endif
