/*
 * mix.h - which source is next, by what was taken of each.
 *
 * A source is due when it is not ahead of its share of what was taken.  Of
 * those that are due, the one is next whose next sequence, at the rate of its
 * weight, would end first.  This is the scheduler WF2Q (Bennett and Zhang
 * 1996), and with sequences as units the solution of the chairman assignment
 * problem.  At any time no source is ahead of its share, or behind it, by as
 * much as the longest sequence that was taken or is next; rules that only look
 * for the source furthest behind do not keep that bound.
 *
 * All of it is in whole numbers, so it is exact, and there is nothing to
 * remember but what was taken of each.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKMIX_MIX_H
#define TOKMIX_MIX_H

#include <stdbool.h>
#include <stdint.h>

typedef struct mix_source {
    uint64_t weight; /* 1 or more */
    uint64_t taken;  /* tokens or sequences */
    uint64_t next;   /* of its next sequence; known when it is due */
    bool left;       /* is not in the mix any more */
} mix_source;

/* Members may be read, and `next` of a source set. */
typedef struct mix {
    mix_source *sources;
    uint32_t n;
    uint64_t weight; /* of all that are in the mix, */
    uint64_t taken;  /* and what was taken of them */
} mix;

/* Of `n` sources with these weights, whose sum is below 2^63. */
void mix_begin(mix *m, mix_source *sources, const uint64_t *weights,
               uint32_t n);

/* Whether a source is in the mix, and not ahead of its share. */
bool mix_is_due(const mix *m, uint32_t source);

/* Which is next, there being one; `next` is set in all that are due. */
uint32_t mix_next(const mix *m);

/* Takes the next sequence of a source. */
void mix_take(mix *m, uint32_t source);

/*
 * A source leaves.  The others begin to count anew: what comes from now on is
 * shared among them.  False if it was the last.
 */
bool mix_leave(mix *m, uint32_t source);

#endif
