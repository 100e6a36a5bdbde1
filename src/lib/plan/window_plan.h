/*
 * window_plan.h - plans for the sequences that a window of a stream holds, in
 * little time.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_PLAN_WINDOW_PLAN_H
#define LIB_PLAN_WINDOW_PLAN_H

#include "plan/plan.h"

/* How much work a plan may take for each sequence. */
typedef enum ps_effort {
    PS_EFFORT_LOW,    /* for a flush: about a microsecond */
    PS_EFFORT_MEDIUM, /* for a full window: some, with nnlshp's fit */
    PS_EFFORT_HIGH    /* for the end: some tens, but no second in all */
} ps_effort;

/* Makes a plan for the histogram.  PS_ERR_MEMORY, PS_ERR_LIMIT. */
ps_result ps_plan_window(ps_plan **plan, const ps_histogram *h,
                         ps_effort effort, const ps_plan_options *o,
                         ps_error *err);

/* The most that it takes, the plan included. */
uint64_t ps_plan_window_bytes(const ps_plan_size *size, ps_effort effort);

#endif
