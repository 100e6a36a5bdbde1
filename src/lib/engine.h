/*
 * engine.h - decides which sequences make a pack, and when it leaves.
 *
 * Pure: it sees lengths and slots; no payload, no input or output, no
 * clock.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_H
#define LIB_ENGINE_H

#include "policy.h"

typedef struct ps_engine ps_engine;

/* Within the limits that ps_geometry_check checks.  PS_ERR_MEMORY. */
ps_result ps_engine_open(ps_engine **engine, const ps_policy *policy,
                         uint32_t capacity, uint32_t depth, uint32_t window,
                         ps_error *err);
void ps_engine_free(ps_engine *engine);

/*
 * Takes a sequence of 1..capacity tokens in and gives its slot, below
 * `window`.  Not while a decision is due.
 */
uint32_t ps_engine_admit(ps_engine *engine, uint32_t length);

/*
 * The next pack: how many sequences, and their slots at *slots, which stay
 * valid until the next admit.  0 if none is due: with `flush` only when the
 * window is empty.
 */
uint32_t ps_engine_decide(ps_engine *engine, bool flush,
                          const uint32_t **slots);

/* The slot of the oldest sequence held, or PS_NO_SLOT. */
uint32_t ps_engine_oldest(const ps_engine *engine);

/* Tokens in a slot that was admitted or just decided on. */
uint32_t ps_engine_length(const ps_engine *engine, uint32_t slot);

#endif
