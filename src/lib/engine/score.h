/*
 * score.h - value of each length in the window to the next pack.
 *
 * The score of a length is its price (dual_prices.h), plus small terms for
 * balance, if the window has too many sequences of this length (balance.h), and
 * for the age of the oldest.  Scores are in a table by length and, for large
 * capacities, in another by units, for the value function (value.h).
 *
 * Sequences are placed while a pack is being built; placing can be undone.
 * When the last sequence of a length is placed, its score becomes NONE.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_SCORE_H
#define LIB_ENGINE_SCORE_H

#include "engine/balance.h"
#include "engine/dual_prices.h"
#include "engine/window.h"

/* No sequence.  Less than any score or sum of scores. */
#define PS_SCORE_NONE (-(INT32_C(1) << 29))

/* False for NONE, even if other scores were added to it. */
static inline bool ps_score_exists(int32_t score)
{
    return score > PS_SCORE_NONE / 2;
}

/* Public for inline functions; the policy reads some members. */
typedef struct ps_score {
    const ps_window *window;
    const ps_dual_prices *prices;
    uint32_t capacity;
    ps_units units;     /* the units of the prices */
    int32_t *score;     /* by length; NONE: no sequence */
    int32_t *reversed;  /* the same by capacity - length */
    int32_t *best;      /* by unit: greatest score of its lengths */
    int32_t *by_unit;   /* memory of `best`, unless it is `score` */
    uint32_t *placed;   /* sequences placed, by length */
    ps_length_balance balance;
    uint64_t learned; /* arrivals when the balance was learned; 0: never */
    uint64_t epoch;   /* time of the last refresh, to which ages are counted */
    uint32_t span;    /* sequences of a full window at that time */
    uint64_t max_age; /* records; a greater age adds nothing */
    uint64_t step;    /* score per record of age, times 2^32 */
} ps_score;

/*
 * At first the score of a length is its fraction of the capacity.  Sets
 * mem->failed if memory runs out.
 */
void ps_score_init(ps_score *score, const ps_window *window,
                   const ps_dual_prices *prices, ps_mem *mem);
void ps_score_destroy(ps_score *score);

/* Learns the balance again if many sequences have arrived since. */
void ps_score_learn(ps_score *score);

/* Forgets the balance.  Call it when the units of the prices change. */
void ps_score_forget(ps_score *score);

/*
 * Recomputes all scores at time `now`, in records.  A full window has `span`
 * sequences.
 */
void ps_score_refresh(ps_score *score, uint64_t now, uint32_t span);

/*
 * Save and load the members that do not follow from the window and the prices,
 * which must be loaded first.  Loading fails if the numbers are invalid.
 */
void ps_score_save(const ps_score *score, ps_saver *saver);
void ps_score_load(ps_score *score, ps_restorer *restorer);

/* The length with the greatest score in a unit; 0 (score NONE): no sequence. */
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

/* Computes the score of a length that is in the window. */
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

/* Sequences of a length that are not placed. */
static inline uint32_t ps_score_left(const ps_score *s, uint32_t length)
{
    return s->window->queues[length].count - s->placed[length];
}

/*
 * Call these after the window has admitted a sequence or one was taken, while
 * nothing is placed.  Sequences that fill a pack do not affect the balance.
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

/* Place a sequence of a length that has one left, or undo the placement. */
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
