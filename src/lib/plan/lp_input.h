/*
 * lp_input.h - a histogram made ready for the relaxation: as it is, or
 * with fewer, rounder lengths where it has too many.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_PLAN_LP_INPUT_H
#define LIB_PLAN_LP_INPUT_H

#include "lp/column_gen.h"

/* Lengths and capacity are counted in units of some tokens. */
typedef struct ps_lp_input {
    ps_lp_instance instance;
    uint32_t unit;
    uint32_t *length;
    double *count;
    uint32_t *place; /* of each length of the histogram in the instance */
} ps_lp_input;

/*
 * The unit, of few tokens, with which the histogram has at most `max_lengths`
 * lengths, and the capacity at most `max_units` units.
 */
uint32_t ps_lp_input_unit(const ps_histogram *h, uint32_t capacity,
                          uint32_t max_lengths, uint32_t max_units);

/*
 * Rounds up, so that every plan for the instance is one for the histogram; or
 * down, so that every bound for it is one for the histogram.  Rounding down
 * leaves out the lengths below a unit, and those that fit with no other; so
 * the instance may be empty.  PS_ERR_MEMORY.
 */
ps_result ps_lp_input_open(ps_lp_input *input, const ps_histogram *h,
                           uint32_t capacity, uint32_t depth, uint32_t unit,
                           bool up, ps_error *err);
void ps_lp_input_free(ps_lp_input *input);

/* How many lengths, from the shortest on, fit in a pack with the shortest. */
size_t ps_lp_input_pairable(const ps_histogram *h, uint32_t capacity);

/* The most that it takes; lengths: of the histogram. */
uint64_t ps_lp_input_bytes(uint32_t lengths);

#endif
