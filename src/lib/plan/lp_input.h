/*
 * lp_input.h - convert a histogram to an instance of the relaxation, rounding
 * lengths if there are too many.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_PLAN_LP_INPUT_H
#define LIB_PLAN_LP_INPUT_H

#include "lp/column_gen.h"

/* An instance whose lengths and capacity are in units of `unit` tokens. */
typedef struct ps_lp_input {
    ps_lp_instance instance;
    uint32_t unit;    /* tokens */
    uint32_t *length; /* [instance.n], in units */
    double *count;    /* [instance.n], sequences */
    uint32_t *place;  /* index in the instance, by bin of the histogram */
} ps_lp_input;

/*
 * Returns a small unit, in tokens, with which the histogram has at most
 * `max_lengths` lengths and the capacity at most `max_units` units.
 */
uint32_t ps_lp_input_unit(const ps_histogram *h, uint32_t capacity,
                          uint32_t max_lengths, uint32_t max_units);

/*
 * Rounds lengths up, so that every plan for the instance is valid for the
 * histogram, or down, so that every lower bound is valid for it.  Rounding down
 * omits lengths below one unit and lengths that fit with no other, so the
 * instance can be empty.  PS_OK, PS_ERR_MEMORY.
 */
ps_result ps_lp_input_open(ps_lp_input *input, const ps_histogram *h,
                           uint32_t capacity, uint32_t depth, uint32_t unit,
                           bool up, ps_error *err);
void ps_lp_input_free(ps_lp_input *input);

/* Number of lengths, from the shortest, that fit a pack with the shortest. */
size_t ps_lp_input_pairable(const ps_histogram *h, uint32_t capacity);

/* Upper bound on the memory for a histogram with `lengths` lengths, bytes. */
uint64_t ps_lp_input_bytes(uint32_t lengths);

#endif
