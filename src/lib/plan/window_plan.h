/*
 * window_plan.h - fast plans for the sequences in a window.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_PLAN_WINDOW_PLAN_H
#define LIB_PLAN_WINDOW_PLAN_H

#include "plan/plan.h"

/* Amount of work per sequence. */
typedef enum ps_effort {
    PS_EFFORT_LOW,    /* for a flush: about 1 us */
    PS_EFFORT_MEDIUM, /* for a full window: several us, with the fit of
                         nnlshp */
    PS_EFFORT_HIGH    /* for the end: tens of us, but below a second in total */
} ps_effort;

/* Makes a plan for the histogram.  PS_OK, PS_ERR_MEMORY, PS_ERR_LIMIT. */
ps_result ps_plan_window(ps_plan **plan, const ps_histogram *h,
                         ps_effort effort, const ps_plan_options *o,
                         ps_error *err);

/* Upper bound on the memory of ps_plan_window with the plan, in bytes. */
uint64_t ps_plan_window_bytes(const ps_plan_size *size, ps_effort effort);

#endif
