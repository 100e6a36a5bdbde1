/*
 * score.h - what each sequence on hand is worth to the next pack.
 *
 * The score of a length is the price of its sequences (dual_prices.h), a
 * little for what the window holds too much of (balance.h), and a little for
 * the age of its oldest sequence.  Scores stand in tables by length; where
 * the capacity is large, in one by units of length too, for the value
 * function (value.h).
 *
 * While a pack is made, sequences are placed in it, on trial.  The last one
 * of a length that is placed takes the length out of the tables.
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

/* True if a score, or a sum of some with at most one of NONE, is of a pack. */
static inline bool ps_score_is_there(int32_t score)
{
    return score > PS_SCORE_NONE / 2;
}

/* Here so that updates are done in line; the rest is score.c's. */
typedef struct ps_score {
    const ps_window *window;
    const ps_dual_prices *prices;
    uint32_t capacity;
    ps_units units; /* of the value function, for now */
    bool is_fine;   /* there are up to 1,024 of them, not 256 */
    int32_t *score;    /* by length; or NONE */
    int32_t *reversed; /* the same by capacity - length */
    int32_t *best;     /* by unit: the best of its lengths */
    int32_t *by_unit;  /* where that is, unless it is `score` */
    uint32_t *placed;  /* by length */
    ps_balance balance;
    uint64_t learned;  /* records that had come when the balance was */
    uint64_t epoch;    /* age is counted up to here */
    uint64_t max_age; /* records; more is worth no more */
    uint64_t step;     /* for a record of age, times 2^32 */
} ps_score;

/* At first a length is worth its part of the capacity.  PS_ERR_MEMORY. */
ps_result ps_score_open(ps_score **score, const ps_window *window,
                        const ps_dual_prices *prices, ps_error *err);
void ps_score_free(ps_score *score);

/* How many units of length there may be. */
uint32_t ps_score_max_units(uint32_t capacity);

/* The most memory that it takes. */
uint64_t ps_score_bytes(uint32_t capacity);

/* Learns the balance anew if much came since the last time. */
void ps_score_learn(ps_score *score);

/*
 * Scores all lengths anew, at a time by the clock of the window; in few units
 * or in fine ones.
 */
void ps_score_refresh(ps_score *score, uint64_t now, bool fine);

/*
 * What does not follow from the window and the prices; both are loaded
 * before.  The load fails if it cannot be what was saved.
 */
void ps_score_save(const ps_score *score, ps_saver *saver);
void ps_score_load(ps_score *score, ps_restorer *restorer);

/* The length with the best score in a unit, or 0. */
uint32_t ps_score_best_in(const ps_score *score, uint32_t unit);

/* Finds the best score of a unit anew. */
void ps_score_search_unit(ps_score *score, uint32_t unit);

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
        ps_score_search_unit(s, u);
}

static inline int32_t ps_score_of(const ps_score *s, uint32_t length)
{
    uint64_t time = ps_window_time(s->window,
                                   ps_window_oldest_of(s->window, length));
    uint64_t age = s->epoch > time ? s->epoch - time : 0;

    age = age < s->max_age ? age : s->max_age;
    return ps_dual_price_of(s->prices, length) +
           ps_balance_of(&s->balance, length) +
           (int32_t)(age * s->step >> 32);
}

/* To be called when the oldest sequence of a length may be another. */
static inline void ps_score_update(ps_score *s, uint32_t length)
{
    ps_score_set(s, length,
                 ps_window_count_of(s->window, length) > s->placed[length]
                     ? ps_score_of(s, length)
                     : PS_SCORE_NONE);
}

/*
 * To be called when the window has admitted a sequence, or taken one out.
 * Those that fill a pack alone are no part of any balance.
 */
static inline void ps_score_admit(ps_score *s, uint32_t length)
{
    if (length < s->capacity)
        ps_balance_admit(&s->balance, length);
    if (ps_window_count_of(s->window, length) == 1)
        ps_score_update(s, length);
}

static inline void ps_score_take(ps_score *s, uint32_t length)
{
    if (length < s->capacity)
        ps_balance_take(&s->balance, length);
    ps_score_update(s, length);
}

/* Sequences of a length that are on hand and not placed. */
static inline uint32_t ps_score_left(const ps_score *s, uint32_t length)
{
    return ps_window_count_of(s->window, length) - s->placed[length];
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
