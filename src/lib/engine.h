/*
 * engine.h - decides which sequences make a pack, and when it leaves.
 *
 * Pure: it sees lengths and slots; no payload, no input or output, no
 * clock but the count of records.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_H
#define LIB_ENGINE_H

#include "window.h"

typedef struct ps_engine ps_engine;

/* As in ps_packer_options, but the depth is known, and no default is left. */
typedef struct ps_engine_options {
    uint32_t capacity;
    uint32_t depth;
    uint32_t window;
    ps_policy policy;
    ps_pack_order order;
    uint64_t seed;
    uint64_t max_delay; /* at least 1 */
    bool even_cost;
} ps_engine_options;

/* Within the limits that ps_geometry_check checks.  PS_ERR_MEMORY. */
ps_result ps_engine_open(ps_engine **engine,
                         const ps_engine_options *options, ps_error *err);
void ps_engine_free(ps_engine *engine);

/* Slots are below this: the window, and what waits in decided packs. */
uint32_t ps_engine_slots(const ps_engine *engine);

/*
 * A record of the input came, to be admitted (whole or in pieces) or not.
 * Decisions may be due then, before it is admitted.
 */
void ps_engine_tick(ps_engine *engine);

/*
 * Takes a sequence of 1..capacity tokens in and gives its slot.  Not while a
 * decision is due.
 */
uint32_t ps_engine_admit(ps_engine *engine, uint32_t length);

/*
 * The next pack: how many sequences, and their slots at *slots, which stay
 * valid until the next admit.  None if no decision is due: with `flush` only
 * when all have left.  PS_ERR_MEMORY.
 */
ps_result ps_engine_decide(ps_engine *engine, bool flush,
                           const uint32_t **slots, uint32_t *n,
                           ps_error *err);

/*
 * One pack leaves, if any sequence is held, though none may be due; else as
 * ps_engine_decide.
 */
ps_result ps_engine_press(ps_engine *engine, const uint32_t **slots,
                          uint32_t *n, ps_error *err);

/* The slot of the oldest sequence that has not left, or PS_NO_SLOT. */
uint32_t ps_engine_oldest(const ps_engine *engine);

/* Tokens in a slot that was admitted or just decided on. */
uint32_t ps_engine_length(const ps_engine *engine, uint32_t slot);

/* Tokens in the window; with PS_POLICY_CONCAT, in the pack that fills. */
uint64_t ps_engine_tokens(const ps_engine *engine);

/* The most records that came between a sequence and its leaving. */
uint64_t ps_engine_delay(const ps_engine *engine);

#endif
