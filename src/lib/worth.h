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

#include "window.h"

/* The worth of a full pack. */
#define PS_WORTH_ONE (INT32_C(1) << 20)

/* Less than anything that is there. */
#define PS_WORTH_NONE (-(INT32_C(1) << 28))

typedef struct ps_worth ps_worth;

/* At first a length is worth its part of the capacity.  PS_ERR_MEMORY. */
ps_result ps_worth_open(ps_worth **worth, const ps_window *window,
                        uint32_t capacity, uint32_t window_size,
                        ps_error *err);
void ps_worth_free(ps_worth *worth);

/*
 * New prices, 0..PS_WORTH_ONE, of the lengths 1..capacity, where the depth
 * binds.  NULL: as at first, for where it does not.
 */
void ps_worth_set_prices(ps_worth *worth, const int32_t *price);

/* To be called when the oldest sequence of a length may be another. */
void ps_worth_update(ps_worth *worth, uint32_t length);

/* To be called before a decision. */
void ps_worth_set_time(ps_worth *worth, uint64_t now);

int32_t ps_worth_price(const ps_worth *worth, uint32_t length);

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
