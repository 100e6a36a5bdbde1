/*
 * close.h - plans for few sequences of a stream, in little time.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_PLAN_CLOSE_H
#define LIB_PLAN_CLOSE_H

#include "plan/plan.h"

/*
 * Makes a plan for a histogram of few sequences.  The work goes with their
 * number: it is about a microsecond for each, whatever the lengths.
 * PS_ERR_MEMORY, PS_ERR_LIMIT.
 */
ps_result ps_plan_close(ps_plan **plan, const ps_histogram *h,
                        const ps_plan_options *o, ps_error *err);

/*
 * The same with more care, for the end of a stream: some tens of microseconds
 * for each sequence, and some tenths of a second at most.
 */
ps_result ps_plan_end(ps_plan **plan, const ps_histogram *h,
                      const ps_plan_options *o, ps_error *err);

/*
 * As ps_plan_close with nnlshp's fit besides, for more work, but no more than
 * some microseconds for each sequence: for a window that is full.
 */
ps_result ps_plan_window(ps_plan **plan, const ps_histogram *h,
                         const ps_plan_options *o, ps_error *err);

/* The most that each takes, the plan included. */
uint64_t ps_plan_close_bytes(const ps_plan_size *size);
uint64_t ps_plan_end_bytes(const ps_plan_size *size);
uint64_t ps_plan_window_bytes(const ps_plan_size *size);

#endif
