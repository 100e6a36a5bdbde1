/*
 * shadow.h - best fit run beside the policy, where it may be better.
 *
 * Where packs hold two sequences and lengths are spread evenly, the LP has
 * many optimal prices, and packing by any of them is worse than best fit.  In
 * other streams best fit is much worse.  The shadow decides which it is: best
 * fit packs the same sequences in a window of its own, and its packs are
 * compared with the LP bound.  If they exceed it by about one pack in each
 * window of the stream or less, whatever the size of the window, best fit
 * loses nothing but chance; otherwise it loses a part of each pack.  With few
 * lengths prices lose almost nothing, and best fit has to do as well.
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
    bool runs;        /* few lengths came, or packs hold few sequences */
    bool fits;        /* best fit is good enough to use */
    ps_window window; /* of best fit; empty unless it runs */
    uint64_t packs;   /* of best fit, since the comparison began */
    double *from;     /* sequences packed before that, by unit */
    double *left;     /* scratch, by unit */
    double carry;     /* excess of earlier comparisons, in packs */
    double total;     /* what the prices had counted when it was judged */
    uint32_t windows; /* of the stream that the excess comes from */
} ps_shadow;

/* Sets mem->failed without memory. */
void ps_shadow_init(ps_shadow *shadow, const ps_dual_prices *prices,
                    uint32_t depth, ps_mem *mem);
void ps_shadow_destroy(ps_shadow *shadow);

/* A sequence came.  To be called if the shadow runs. */
void ps_shadow_admit(ps_shadow *shadow, uint32_t length);

/* Starts, stops and decides.  To be called once in a window of the stream. */
void ps_shadow_judge(ps_shadow *shadow);

/* To be called when the prices count in other units. */
void ps_shadow_stop(ps_shadow *shadow);

/* The load fails if it cannot be what was saved.  Prices are loaded before. */
void ps_shadow_save(const ps_shadow *shadow, ps_saver *saver);
void ps_shadow_load(ps_shadow *shadow, ps_restorer *restorer);

#endif
