/*
 * policy.h - interface of the policies, which choose the next pack.
 *
 * A policy knows only the lengths and ages of the sequences admitted, and its
 * choices depend on nothing else.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_POLICY_H
#define LIB_ENGINE_POLICY_H

#include "base/serial.h"
#include "engine/window.h"

/*
 * With budgets, the window is full with the least number of sequences and what
 * fills this many packs.
 */
#define PS_BUDGET_PACKS 16

/* Which packs the caller wants. */
typedef enum ps_emit_mode {
    PS_EMIT_DUE,    /* those that are due */
    PS_EMIT_DRAIN,  /* all; more sequences may follow */
    PS_EMIT_FINISH, /* all; no more sequences follow */
} ps_emit_mode;

/* Parameters of a policy.  The engine owns the window.  Lengths in units. */
typedef struct ps_policy_setup {
    ps_policy policy;
    ps_window *window;
    uint32_t capacity;
    uint32_t depth;
    uint32_t window_size; /* usual number of sequences in a full window */
    uint32_t max_window;  /* maximum number */
    uint32_t max_lengths; /* maximum number of distinct lengths in it */
    uint64_t max_delay;
    bool in_order;  /* each pack contains the oldest sequence */
    bool even_cost; /* as in ps_packer_options */
    uint32_t n_budgets;
    uint64_t budgets[PS_MAX_BUDGETS]; /* limits of a pack */
    bool by_topic; /* prefer sequences of one topic */
    const uint64_t *uses; /* [slots][n_budgets], owned by the engine: the
                             amount of each budget that a sequence uses; with
                             by_topic [slots]: the topic */
    const ps_histogram *learn_from; /* as in ps_engine_options */
} ps_policy_setup;

/*
 * Takes sequence `i` of a pack, of this length, from the window, and sets
 * slots[i]; with by_topic, one of the topic of slots[0] if possible.
 */
static inline void ps_policy_take(const ps_policy_setup *setup, uint32_t length,
                                  uint32_t *slots, uint32_t i)
{
    slots[i] = setup->by_topic && i > 0
                   ? ps_window_take_like(setup->window, length, setup->uses,
                                         setup->uses[slots[0]])
                   : ps_window_take(setup->window, length);
}

typedef struct ps_policy_calls {
    /* Upper bound on its memory, bytes.  `window` is not used. */
    uint64_t (*bytes)(const ps_policy_setup *setup);

    /* PS_OK, PS_ERR_MEMORY. */
    ps_result (*open)(void **state, const ps_policy_setup *setup,
                      ps_error *err);
    void (*free)(void *state);

    /* Called after a sequence was admitted, unless NULL. */
    void (*admitted)(void *state, uint32_t length);

    /* True if a pack is due although the window is not full.  NULL: never. */
    bool (*is_ready)(const void *state);

    /*
     * Removes the sequences of one pack, 1 to `depth` of at most `capacity` in
     * total, from the window, which is not empty.  Writes their *n slots.
     * `now` is the time in records.  PS_OK, PS_ERR_MEMORY.
     */
    ps_result (*choose)(void *state, uint64_t now, ps_emit_mode mode,
                        uint32_t *slots, uint32_t *n, ps_error *err);

    /*
     * Save and load what later choices depend on besides the window.  No pack
     * is due.  Loading takes a state just opened, after the window was loaded.
     * NULL: nothing to save.  PS_OK, PS_ERR_MEMORY, PS_ERR_CORRUPT.
     */
    void (*save)(const void *state, ps_saver *saver);
    ps_result (*load)(void *state, ps_restorer *restorer, ps_error *err);
} ps_policy_calls;

extern const ps_policy_calls ps_policy_auto_calls;

/* spfhp and nnlshp; also auto, when everything held is packed. */
extern const ps_policy_calls ps_policy_plan_calls;

/* bestfit, nextfit, none and concat. */
extern const ps_policy_calls ps_policy_simple_calls;

/* auto, if packs have budgets. */
extern const ps_policy_calls ps_policy_budget_calls;

/* For a policy known to ps_policy_name. */
const ps_policy_calls *ps_policy_calls_of(ps_policy policy,
                                          uint32_t n_budgets);

#endif
