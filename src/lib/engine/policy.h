/*
 * policy.h - a way to choose what goes into the next pack.
 *
 * Policies are pure: they see lengths and ages, nothing else, and what they
 * choose depends on nothing but what was admitted, and when.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_POLICY_H
#define LIB_ENGINE_POLICY_H

#include "base/serial.h"
#include "engine/window.h"

/* Which packs the caller wants.  The first is 0. */
typedef enum ps_emit_mode {
    PS_EMIT_DUE,   /* those that are due */
    PS_EMIT_DRAIN, /* all there are; more sequences may come */
    PS_EMIT_FINISH,  /* all there are; no more sequences will come */
} ps_emit_mode;

/* What a policy is opened with; the window belongs to the engine. */
typedef struct ps_policy_setup {
    ps_policy policy;
    ps_window *window;
    uint32_t capacity;
    uint32_t depth;
    uint32_t window_size; /* sequences, usually */
    uint32_t max_window;  /* and at most, */
    uint32_t max_lengths; /* of so many different lengths */
    uint64_t max_delay;
    bool in_order;  /* the oldest is in each pack */
    bool even_cost; /* as in ps_packer_options */
    const ps_histogram *learn_from; /* as in ps_engine_options */
} ps_policy_setup;

typedef struct ps_policy_calls {
    /* The most memory that it takes; `window` need not be there. */
    uint64_t (*bytes)(const ps_policy_setup *setup);

    /* PS_ERR_MEMORY. */
    ps_result (*open)(void **state, const ps_policy_setup *setup,
                      ps_error *err);
    void (*free)(void *state);

    /* A sequence was admitted.  NULL: it does not matter. */
    void (*admitted)(void *state, uint32_t length);

    /*
     * True if a pack should leave though the window is not full.  NULL: it
     * never should.
     */
    bool (*is_ready)(const void *state);

    /*
     * Takes the sequences of one pack, at least one and at most `depth`,
     * of at most `capacity` tokens together, out of a window that is not
     * empty; writes their slots and how many there are.  `now` is the time
     * by the clock of the window.  PS_ERR_MEMORY.
     */
    ps_result (*choose)(void *state, uint64_t now, ps_emit_mode mode,
                        uint32_t *slots, uint32_t *n, ps_error *err);

    /*
     * Saves what later choices depend on besides the window, while no pack is
     * due; and loads it, after the same window was, into a state that was
     * just opened.  NULL: there is nothing to save.  PS_ERR_MEMORY,
     * PS_ERR_CORRUPT (it cannot be what was saved).
     */
    void (*save)(const void *state, ps_saver *saver);
    ps_result (*load)(void *state, ps_restorer *restorer, ps_error *err);
} ps_policy_calls;

extern const ps_policy_calls ps_policy_auto_calls;

/* spfhp and nnlshp; and auto, when all packs are to leave. */
extern const ps_policy_calls ps_policy_plan_calls;

/* bestfit, nextfit, none and concat. */
extern const ps_policy_calls ps_policy_simple_calls;

/* For a policy that has a name (ps_policy_name). */
const ps_policy_calls *ps_policy_calls_of(ps_policy policy);

#endif
