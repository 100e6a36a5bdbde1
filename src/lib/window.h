/*
 * window.h - the sequences admitted and not yet emitted, by length and by
 * age.  Knows lengths only; payloads are in a store under the same slots.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_WINDOW_H
#define LIB_WINDOW_H

#include "packstream.h"

#define PS_NO_SLOT UINT32_MAX

typedef struct ps_window ps_window;

/*
 * Room for `size` >= 1 sequences of 1..longest tokens, and slots for `spare`
 * more that were taken and are not yet released.  PS_ERR_MEMORY.
 */
ps_result ps_window_open(ps_window **window, uint32_t size, uint32_t spare,
                         uint32_t longest, ps_error *err);
void ps_window_free(ps_window *window);

/* How many sequences are held, and whether no more fit. */
uint32_t ps_window_count(const ps_window *window);
bool ps_window_full(const ps_window *window);

/* Tokens of the sequences held. */
uint64_t ps_window_tokens(const ps_window *window);

/*
 * Takes in a sequence of `length` that came at a time, which is not before
 * that of the one before; gives its slot.  Not when full.
 */
uint32_t ps_window_admit(ps_window *window, uint32_t length, uint64_t time);

/* When the sequence came that is, or was last, in a slot. */
uint64_t ps_window_time(const ps_window *window, uint32_t slot);

/* The sequence held longest, of all or of a length; or PS_NO_SLOT. */
uint32_t ps_window_oldest(const ps_window *window);
uint32_t ps_window_oldest_of(const ps_window *window, uint32_t length);

/* Sequences of a length: an entry of the window's histogram. */
uint32_t ps_window_count_of(const ps_window *window, uint32_t length);

/* The greatest length held that is at most `limit`; 0 if there is none. */
uint32_t ps_window_longest(const ps_window *window, uint32_t limit);

uint32_t ps_window_length(const ps_window *window, uint32_t slot);

/* Takes out the oldest sequence of a length; gives its slot. */
uint32_t ps_window_take(ps_window *window, uint32_t length);

/* Lets the slot of a sequence that was taken be used again. */
void ps_window_release(ps_window *window, uint32_t slot);

#endif
