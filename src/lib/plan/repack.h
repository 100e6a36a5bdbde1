/*
 * repack.h - plans for few sequences, by prices and local search: packs are
 * made one by one, then a few at a time are made again.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_PLAN_REPACK_H
#define LIB_PLAN_REPACK_H

#include "plan/plan.h"

/* With more sequences than this, ps_plan_repack does nothing. */
#define PS_REPACK_SEQUENCES (UINT32_C(1) << 20)

typedef struct ps_repack_options {
    uint32_t capacity;
    uint32_t depth;
    const double *price; /* by length of the histogram, packs */
    double min_packs;    /* lower bound for any plan, packs */
    double work;         /* steps, about 10^8 per second */
} ps_repack_options;

/*
 * Replaces *best, which may be NULL, with a plan for the whole histogram if it
 * finds one with fewer packs.  Deducts the work done from o->work, although
 * making the initial packs can take more.
 * PS_OK, PS_ERR_MEMORY, PS_ERR_LIMIT.
 */
ps_result ps_plan_repack(ps_plan **best, const ps_histogram *h,
                         ps_repack_options *o, ps_error *err);

/* Upper bound on the memory of ps_plan_repack, in bytes, without the plans. */
uint64_t ps_plan_repack_bytes(uint64_t sequences, uint32_t lengths);

#endif
