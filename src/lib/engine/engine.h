/*
 * engine.h - decides which sequences make a pack, and when it leaves.
 *
 * This room sees lengths and slots; no payload, no input or output, no clock
 * but the count of records.  What it decides follows from that alone, on
 * every machine alike.  It calls base, lp and plan.
 *
 * engine.c admits sequences to the window (window.h) and says when a pack is
 * due; shuffle.h keeps decided packs that leave in random order.  A policy
 * (policy.h) chooses the sequences of a pack: policy_plan.c by a plan for the
 * whole window, policy_simple.c as they come, and policy_auto.c by scores:
 *
 *   dual_prices.h  what a length is worth to packs still to come, by prices
 *                  that were right for some demand (price_cuts.h)
 *   balance.h      whether the window has too much of it
 *   score.h        the two together, and age, for each length in the window
 *   value.h        the most that some room can be filled with
 *   pack_builder.h builds a pack from scores and values, or by best fit
 *   shadow.h       whether best fit is the better of the two
 *   tuning.h       the constants of all these
 *   kernels.h      the loops that all this spends its time in
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_ENGINE_H
#define LIB_ENGINE_ENGINE_H

#include "engine/policy.h"
#include "engine/shuffle.h"
#include "engine/window.h"

/*
 * Here so that some functions can be inline; others may read n_slots, delay,
 * and the tokens of the window.
 */
typedef struct ps_engine {
    const ps_policy_calls *calls;
    void *policy; /* its state */
    ps_window window;
    ps_shuffle *shuffle; /* NULL: packs leave as they are decided */
    uint64_t max_delay;
    uint64_t max_wait;   /* that part of it that the window may use up */
    uint64_t now;        /* records that came */
    uint64_t idle_until; /* before this, no decision is due */
    uint64_t delay;      /* the most records that came while one waited */
    uint64_t few_tokens; /* with fewer in a full window packs are less full */
    uint64_t scarce;     /* packs that left a full window with fewer, */
    uint64_t evicted;    /* and packs that were evicted from such a window */
    uint32_t n_slots;    /* slots are below: the window, and decided packs */
    uint32_t *slots; /* of the last decision */
} ps_engine;

/* As in ps_packer_options, but the depth is known, and no default is left. */
typedef struct ps_engine_options {
    uint32_t capacity;
    uint32_t depth;
    uint32_t window; /* the most sequences; so many fill it, */
    uint32_t least;  /* or, if this is not 0, so many */
    uint64_t enough; /* with so many tokens */
    ps_policy policy;
    ps_pack_order order;
    uint64_t seed;
    uint64_t max_delay; /* at least 1 */
    bool even_cost;
    const ps_histogram *learn_from; /* lengths up to the capacity that are
                                       expected, or NULL; for the open only */
} ps_engine_options;

/* Within the limits that ps_geometry_check checks.  PS_ERR_MEMORY. */
ps_result ps_engine_open(ps_engine **engine,
                         const ps_engine_options *options, ps_error *err);
void ps_engine_free(ps_engine *engine);

/* The most memory that such an engine takes, and how many slots it has. */
uint64_t ps_engine_bytes(const ps_engine_options *options);
uint32_t ps_engine_slots_for(const ps_engine_options *options);

/*
 * A record of the input came, which may be admitted, whole or in pieces, or
 * rejected.  Decisions may be due then, before it is admitted.
 */
static inline void ps_engine_tick(ps_engine *engine)
{
    engine->now++;
}

/* True if no decision can be due; false says nothing. */
static inline bool ps_engine_is_idle(const ps_engine *engine)
{
    return engine->now < engine->idle_until;
}

/*
 * Admits a sequence of 1..capacity tokens that has waited since `time`, after
 * that of the one admitted last, and returns its slot.  No decision is due.
 */
uint32_t ps_engine_admit_at(ps_engine *engine, uint32_t length, uint64_t time);

/* The same for a sequence that came with the last record. */
static inline uint32_t ps_engine_admit(ps_engine *engine, uint32_t length)
{
    return ps_engine_admit_at(engine, length, engine->now);
}

/*
 * The next pack: how many sequences, and their slots at *slots, which stay
 * valid until the next admit.  None if no decision is due; with FLUSH and
 * LAST, when all packs have left.  PS_ERR_MEMORY.
 */
ps_result ps_engine_decide(ps_engine *engine, ps_emit_mode mode,
                           const uint32_t **slots, uint32_t *n,
                           ps_error *err);

/*
 * As ps_engine_decide, but a pack leaves though none may be due, if there is
 * any sequence.
 */
ps_result ps_engine_evict(ps_engine *engine, const uint32_t **slots,
                          uint32_t *n, ps_error *err);

/*
 * Saves all that decisions depend on, while none is due.  Writes the slots in
 * use, at most n_slots, in an order that the load repeats, and
 * returns how many there are.
 */
uint32_t ps_engine_save(const ps_engine *engine, ps_saver *saver,
                        uint32_t *slots);

/*
 * Loads that into an engine that was opened with the same options; the
 * sequences may get other slots.  PS_ERR_MEMORY, PS_ERR_CORRUPT (it cannot be
 * what was saved).
 */
ps_result ps_engine_load(ps_engine *engine, ps_restorer *restorer,
                         const ps_engine_options *options, uint32_t *slots,
                         uint32_t *n, ps_error *err);

/* The slot of the oldest sequence that has not left, or PS_NO_SLOT. */
uint32_t ps_engine_oldest(const ps_engine *engine);

/* Tokens in a slot that was admitted or just decided on. */
static inline uint32_t ps_engine_length(const ps_engine *engine,
                                        uint32_t slot)
{
    return engine->window.slots[slot].length;
}

#endif
