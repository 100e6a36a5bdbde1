/*
 * repack.h - a plan for few sequences, by prices and by trial: packs
 * are made one by one, and then a few at a time are made again.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_PLAN_REPACK_H
#define LIB_PLAN_REPACK_H

#include "plan/plan.h"

/* With more sequences than these, nothing is tried. */
#define PS_REPACK_SEQUENCES (UINT32_C(1) << 20)

typedef struct ps_repack_options {
    uint32_t capacity;
    uint32_t depth;
    const double *price; /* in packs, of each length of the histogram */
    double min_packs;    /* no plan can have fewer */
    double work;         /* steps, about; some 10^8 of them a second */
} ps_repack_options;

/*
 * Replaces *best, which may be NULL, with a plan for the whole histogram if
 * it finds one that has fewer packs.  Takes the work done from o->work; may
 * go beyond it by what the first packs take.  PS_ERR_MEMORY, PS_ERR_LIMIT.
 */
ps_result ps_plan_repack(ps_plan **best, const ps_histogram *h,
                         ps_repack_options *o, ps_error *err);

/* The most that it takes, besides the plans. */
uint64_t ps_plan_repack_bytes(uint64_t sequences, uint32_t lengths);

#endif
