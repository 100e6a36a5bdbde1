/*
 * policy.h - a way to choose what goes into the next pack.
 *
 * Policies are pure: they see lengths, nothing else, and their choice
 * depends on nothing but the window, the capacity and the depth.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_POLICY_H
#define LIB_POLICY_H

#include "window.h"

typedef struct ps_policy {
    const char *name;

    /*
     * Takes the sequences of one pack, at least one and at most `depth`,
     * of at most `capacity` tokens together, out of a window that is not
     * empty; writes their slots and returns how many there are.
     */
    uint32_t (*choose)(ps_window *window, uint32_t capacity, uint32_t depth,
                       uint32_t *slots);
} ps_policy;

/*
 * The oldest sequence; then, until nothing fits: one that fills the pack
 * exactly, else two that do, else the longest that fits.
 */
extern const ps_policy ps_policy_exact;

#endif
