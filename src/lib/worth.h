/*
 * worth.h - what the sequences in the window are worth to a pack, and which
 * of them are worth most together.
 *
 * A length has a price, which says what its sequences will be worth to
 * future packs; the oldest sequence of a length is worth that and something
 * for its age.  A sequence that waits as long as the mean has no bonus, a
 * younger one has less than none.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_WORTH_H
#define LIB_WORTH_H

#include "search.h"
#include "state.h"
#include "window.h"

/* The worth of a full pack. */
#define PS_WORTH_ONE (INT32_C(1) << 20)

/* Less than anything that is there. */
#define PS_WORTH_NONE (-(INT32_C(1) << 28))

/* Age beyond so many windows is worth no more. */
#define PS_WORTH_OLDEST 8

/* Here so that updates are done in line; nobody else looks into it. */
typedef struct ps_worth {
    const ps_window *window;
    uint32_t capacity;
    uint32_t window_size;
    ps_search search;
    int32_t *price;  /* by length */
    int32_t *worth;  /* by length, or NONE */
    int32_t *turned; /* the same by capacity - length */
    int32_t *most;   /* so too: the most of all up to the length */
    uint32_t n_most; /* of how many lengths, from 0 on, it is known */
    uint32_t led;    /* a length that has one sequence less, or 0 */
    bool met;        /* the last one of it was found nonetheless */
    uint64_t epoch;
    int64_t oldest; /* records from which on age is worth no more */
    int64_t step;   /* what a record of waiting is worth, times 2^32 */
    int32_t aged;   /* what waiting as long as the window is large is worth */
    int32_t shift;  /* to be added for each sequence */
} ps_worth;

/* At first a length is worth its part of the capacity.  PS_ERR_MEMORY. */
ps_result ps_worth_open(ps_worth **worth, const ps_window *window,
                        uint32_t capacity, uint32_t window_size,
                        ps_error *err);
void ps_worth_free(ps_worth *worth);

/* The most that it takes. */
uint64_t ps_worth_bytes(uint32_t capacity);

/*
 * New prices, 0..PS_WORTH_ONE, of the lengths 1..capacity, where the depth
 * binds.  NULL: as at first, for where it does not.
 */
void ps_worth_set_prices(ps_worth *worth, const int32_t *price);

/*
 * What of it does not follow from the window; the load, after that of the
 * window, fails if it makes no sense.
 */
void ps_worth_save(const ps_worth *worth, ps_saver *saver);
void ps_worth_load(ps_worth *worth, ps_restorer *restorer);

/* To be called before a decision. */
void ps_worth_set_time(ps_worth *worth, uint64_t now);

static inline int32_t ps_worth_price(const ps_worth *w, uint32_t length)
{
    return w->price[length];
}

/* What the time from the epoch to another is worth; negative before it. */
static inline int32_t ps_worth_since(const ps_worth *w, uint64_t time)
{
    int64_t records = (int64_t)(time - w->epoch);

    if (records > w->oldest)
        records = w->oldest;
    if (records < -w->oldest)
        records = -w->oldest;
    return (int32_t)(records * w->step / (INT64_C(1) << 32));
}

/* So far a change is followed at once; what is beyond waits to be asked for. */
#define PS_WORTH_FOLLOWED 64

/*
 * Keeps `most` right after a length that was worth `before` has changed.  It
 * stops at what something else is worth that neither was nor is less.
 */
static inline void ps_worth_follow(ps_worth *w, uint32_t length,
                                   int32_t before)
{
    int32_t *end = w->most + w->capacity;
    int32_t most = end[1 - (ptrdiff_t)length];
    int32_t now = w->worth[length];
    uint32_t stop = length + PS_WORTH_FOLLOWED;

    for (uint32_t l = length; l < w->n_most; l++) {
        int32_t old = end[-(ptrdiff_t)l];

        if (old != before && old >= now)
            return;
        if (l == stop) {
            w->n_most = stop;
            return;
        }
        most = w->worth[l] > most ? w->worth[l] : most;
        end[-(ptrdiff_t)l] = most;
    }
}

static inline void ps_worth_set(ps_worth *w, uint32_t length, int32_t worth)
{
    int32_t before = w->worth[length];

    w->worth[length] = worth;
    w->turned[w->capacity - length] = worth;
    if (w->n_most > length)
        ps_worth_follow(w, length, before);
}

/* To be called when the oldest sequence of a length may be another. */
static inline void ps_worth_update(ps_worth *w, uint32_t length)
{
    uint32_t slot = ps_window_oldest_of(w->window, length);
    int32_t worth = PS_WORTH_NONE;

    if (slot != PS_NO_SLOT)
        worth = w->price[length] -
                ps_worth_since(w, ps_window_time(w->window, slot));
    ps_worth_set(w, length, worth);
}

/*
 * Up to three lengths and what they are worth together; `n` of 0 goes with
 * PS_WORTH_NONE.
 */
typedef struct ps_choice {
    int32_t worth;
    uint32_t n;
    uint32_t length[3];
} ps_choice;

/*
 * The choice worth most of those that have the length `first` and at most
 * two others, or at most two lengths if `first` is 0; and in any case no more
 * than `places`.  Of those that sum to just `room`, or of all that fit.
 * Takes time in proportion to `room`.
 */
ps_choice ps_worth_exact(ps_worth *worth, uint32_t first, uint32_t room,
                         uint32_t places);
ps_choice ps_worth_within(ps_worth *worth, uint32_t first, uint32_t room,
                          uint32_t places);

#endif
