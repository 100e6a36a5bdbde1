/*
 * shadow.h - decide whether best fit packs a stream as well as prices do.
 *
 * If packs hold about two sequences and lengths are uniformly distributed, the
 * LP has many optimal prices, and packing by any of them is worse than best
 * fit.  In other streams best fit is much worse.  To find out, best fit packs
 * the same lengths in a window of its own, and its packs are compared with the
 * LP bound.  If they exceed the bound by at most about one pack per window of
 * the stream, whatever the window size, the excess is due to chance; otherwise
 * best fit wastes a part of every pack.  With few distinct lengths, prices
 * waste almost nothing, so the limit is lower.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_SHADOW_H
#define LIB_ENGINE_SHADOW_H

#include "engine/dual_prices.h"
#include "engine/window.h"

typedef struct ps_shadow {
    const ps_dual_prices *prices;
    uint32_t depth;
    bool runs;        /* there are few lengths, or few sequences per pack */
    bool fits;        /* best fit is good enough to be used */
    ps_window window; /* of best fit; empty unless `runs` */
    uint64_t packs;   /* made by best fit since the comparison began */
    double *from;     /* sequences packed before then, by unit */
    double *left;     /* scratch, by unit */
    double carry;     /* excess from earlier comparisons, packs */
    double total;     /* prices->total at the last comparison */
    uint32_t windows; /* windows of arrivals that `carry` and `packs` cover */
} ps_shadow;

/* Sets mem->failed if memory runs out. */
void ps_shadow_init(ps_shadow *shadow, const ps_dual_prices *prices,
                    uint32_t depth, ps_mem *mem);
void ps_shadow_destroy(ps_shadow *shadow);

/* Packs an arrival.  Call it only if `runs`. */
void ps_shadow_admit(ps_shadow *shadow, uint32_t length);

/* Starts, stops or judges best fit.  Call it once per window of arrivals. */
void ps_shadow_judge(ps_shadow *shadow);

/* Call it when the units of the prices change. */
void ps_shadow_stop(ps_shadow *shadow);

/* Load the prices first.  Loading fails if the numbers are invalid. */
void ps_shadow_save(const ps_shadow *shadow, ps_saver *saver);
void ps_shadow_load(ps_shadow *shadow, ps_restorer *restorer);

#endif
