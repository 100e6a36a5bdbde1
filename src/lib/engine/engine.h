/*
 * engine.h - choose the sequences of each pack, and when it is emitted.
 *
 * Main header of module engine.  The engine knows the lengths of sequences and
 * their slots, but no payloads.  It does no I/O, and its only clock is the
 * number of input records.  Its decisions follow from these alone and are the
 * same on every machine.  The module uses base, lp and plan.
 *
 * engine.c admits sequences to the window (window.h) and decides when a pack is
 * due.  shuffle.h holds chosen packs that are emitted in random order.  A
 * policy (policy.h) chooses the sequences of a pack: policy_plan.c by a plan
 * for the whole window, policy_simple.c in input order or by best fit,
 * policy_budget.c by shares of several resources, and policy_auto.c by scores:
 *
 *   dual_prices.h  value of a length to future packs, from the dual prices of
 *                  recent demands (price_cuts.h)
 *   balance.h      correction for lengths that the window has too many of
 *   score.h        score of each length: price, balance and age
 *   value.h        greatest total score that fits some capacity (a knapsack)
 *   pack_builder.h builds a pack from scores and values, or by best fit
 *   shadow.h       decides whether best fit packs as well
 *   tuning.h       the constants of all these
 *   kernels.h      the inner loops
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_ENGINE_H
#define LIB_ENGINE_ENGINE_H

#include "engine/policy.h"
#include "engine/shuffle.h"
#include "engine/window.h"

/*
 * Public for inline functions.  Other modules may read n_slots, delay, scarce,
 * evicted and the window.
 */
typedef struct ps_engine {
    const ps_policy_calls *calls;
    void *policy; /* state of the policy */
    ps_window window;
    ps_shuffle *shuffle; /* NULL: packs are emitted when they are chosen */
    uint64_t max_delay;  /* records */
    uint64_t max_wait;   /* part of max_delay for the window, records */
    uint64_t now;        /* records so far */
    uint64_t idle_until; /* nothing is due before this time */
    uint64_t delay;      /* maximum delay so far, records */
    uint64_t few_tokens; /* a full window with fewer is too small to choose
                            from */
    uint64_t scarce;     /* packs chosen from a full window with fewer */
    uint64_t evicted;    /* packs evicted from a window with fewer */
    uint32_t n_slots;    /* slots of the window and of chosen packs */
    uint32_t n_budgets;
    uint32_t n_uses;     /* the same, or 1 with by_topic */
    uint64_t *uses;      /* [n_slots][n_uses]; see policy.h */
    uint64_t used[PS_MAX_BUDGETS];   /* sums of `uses` over the window */
    uint64_t enough[PS_MAX_BUDGETS]; /* sum of one budget that fills the window
                                        like window.enough */
    uint32_t *slots;     /* of the last pack */
} ps_engine;

/* As in ps_packer_options, with all defaults filled in.  Lengths in units. */
typedef struct ps_engine_options {
    uint32_t capacity;
    uint32_t depth;
    uint32_t window; /* maximum number of sequences; the window is full then */
    uint32_t least;  /* if not 0, it is also full with this many sequences */
    uint64_t enough; /* of this many tokens */
    ps_policy policy;
    ps_pack_order order;
    uint64_t seed;
    uint64_t max_delay; /* records, at least 1 */
    bool even_cost;
    bool by_topic;      /* prefer sequences of one topic; not with budgets */
    uint32_t n_budgets; /* if not 0, the policy is auto */
    uint64_t budgets[PS_MAX_BUDGETS]; /* limits of a pack, 1 to PS_MAX_BUDGET */
    const ps_histogram *learn_from; /* expected lengths, or NULL; read only
                                       while opening */
} ps_engine_options;

/* The options must pass ps_geometry_check.  PS_OK, PS_ERR_MEMORY. */
ps_result ps_engine_open(ps_engine **engine,
                         const ps_engine_options *options, ps_error *err);
void ps_engine_free(ps_engine *engine);

/* Upper bound on the memory of an engine in bytes, and its number of slots. */
uint64_t ps_engine_bytes(const ps_engine_options *options);
uint32_t ps_engine_slots_for(const ps_engine_options *options);

/*
 * Counts an input record, before it is admitted, whole or in pieces, or
 * rejected.  Packs may become due.
 */
static inline void ps_engine_tick(ps_engine *engine)
{
    engine->now++;
}

/* True only if no pack is due. */
static inline bool ps_engine_is_idle(const ps_engine *engine)
{
    return engine->now < engine->idle_until;
}

/*
 * Admits a sequence of 1 to `capacity` units that has waited since `time`,
 * which is after that of the sequence admitted before.  uses[i] is at most
 * budget i; with by_topic, uses[0] is the topic.  Returns its slot.  Call it
 * only when no pack is due.
 */
uint32_t ps_engine_admit_at(ps_engine *engine, uint32_t length,
                            const uint64_t *uses, uint64_t time);

/* The same for the last record. */
static inline uint32_t ps_engine_admit(ps_engine *engine, uint32_t length,
                                       const uint64_t *uses)
{
    return ps_engine_admit_at(engine, length, uses, engine->now);
}

/*
 * Returns the next pack: *n slots at *slots, valid until the next admit.  *n is
 * 0 if no pack is due or, with PS_EMIT_DRAIN and _FINISH, if nothing is left.
 * PS_OK, PS_ERR_MEMORY.
 */
ps_result ps_engine_decide(ps_engine *engine, ps_emit_mode mode,
                           const uint32_t **slots, uint32_t *n,
                           ps_error *err);

/* Returns a pack even if none is due; *n is 0 if no sequence is held. */
ps_result ps_engine_evict(ps_engine *engine, const uint32_t **slots,
                          uint32_t *n, ps_error *err);

/*
 * Saves everything that decisions depend on.  No pack may be due.  Writes the
 * slots in use, at most n_slots, to `slots` and returns their number.
 */
uint32_t ps_engine_save(const ps_engine *engine, ps_saver *saver,
                        uint32_t *slots);

/*
 * Loads it into an engine just opened with the same options.  *slots lists the
 * sequences in the order in which they were saved; their slots may differ.
 * PS_OK, PS_ERR_MEMORY, PS_ERR_CORRUPT.
 */
ps_result ps_engine_load(ps_engine *engine, ps_restorer *restorer,
                         const ps_engine_options *options, uint32_t *slots,
                         uint32_t *n, ps_error *err);

/* Slot of the oldest sequence held, or PS_NO_SLOT. */
uint32_t ps_engine_oldest(const ps_engine *engine);

/* Length in units of the sequence in a slot, also just after it was chosen. */
static inline uint32_t ps_engine_length(const ps_engine *engine,
                                        uint32_t slot)
{
    return engine->window.slots[slot].length;
}

#endif
