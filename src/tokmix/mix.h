/*
 * mix.h - choose the next source from the amounts taken so far.
 *
 * A source is due if it is not ahead of its share of everything taken.  Among
 * the sources that are due, the next source is the one whose next sequence
 * would be complete first if each source advanced at the rate of its weight.
 * This is the scheduler WF2Q (Bennett and Zhang 1996).  With sequences as
 * units, it solves the chairman assignment problem.  No source ever deviates
 * from its share by as much as the longest sequence taken or pending.  Simpler
 * rules, such as choosing the source furthest below its share, do not guarantee
 * this bound.
 *
 * All arithmetic is exact, in integers, and the amounts taken are the only
 * state.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKMIX_MIX_H
#define TOKMIX_MIX_H

#include <stdbool.h>
#include <stdint.h>

typedef struct mix_source {
    uint64_t weight; /* 0: not in the mix */
    uint64_t taken;  /* amount taken so far, in tokens or sequences */
    /* size of the next sequence in the same unit; valid if due */
    uint64_t next;
    bool left; /* no longer in the mix */
} mix_source;

/* Members can be read; the caller sets `next` of each source. */
typedef struct mix {
    mix_source *sources; /* owned by the caller */
    uint32_t n;          /* number of sources */
    uint64_t weight;     /* total weight of the sources in the mix */
    uint64_t taken;      /* total amount taken from these sources */
} mix;

/*
 * Starts a mix of `n` sources.  The sum of the weights must be below 2^63, and
 * one of them must be positive; a source with weight 0 is not in the mix.
 * `sources` is owned by the caller.
 */
void mix_begin(mix *m, mix_source *sources, const uint64_t *weights,
               uint32_t n);

/* True if a source is in the mix and not ahead of its share. */
bool mix_is_due(const mix *m, uint32_t source);

/*
 * Index of the next source.  At least one source must be due, and `next` must
 * be set in all sources that are due.
 */
uint32_t mix_next(const mix *m);

/* Counts the next sequence of a source as taken. */
void mix_take(mix *m, uint32_t source);

/*
 * Removes a source.  All amounts restart at 0, so that from then on the other
 * sources share the output.  Returns false if it was the last source.
 */
bool mix_leave(mix *m, uint32_t source);

#endif
