/*
 * shuffle.h - packs that were decided and leave in random order.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_SHUFFLE_H
#define LIB_ENGINE_SHUFFLE_H

#include "base/serial.h"
#include "packstream.h"

typedef struct ps_shuffle ps_shuffle;

/* The most sequences that may wait, for a window of this size and depth. */
uint32_t ps_shuffle_sequences(uint32_t window, uint32_t depth);

/* For slots below `slots`.  PS_ERR_MEMORY. */
ps_result ps_shuffle_open(ps_shuffle **shuffle, uint64_t seed,
                          uint32_t window, uint32_t slots, ps_error *err);
void ps_shuffle_free(ps_shuffle *shuffle);

/* The most that it takes; and how many packs may wait. */
uint64_t ps_shuffle_bytes(uint32_t slots);
uint32_t ps_shuffle_max_packs(void);

/* True if no more fit. */
bool ps_shuffle_is_full(const ps_shuffle *shuffle);

/* How many sequences wait. */
uint32_t ps_shuffle_count(const ps_shuffle *shuffle);

/* Adds a pack; `oldest` is one of its slots, with the least time of them. */
void ps_shuffle_put(ps_shuffle *shuffle, const uint32_t *slots, uint32_t n,
                    uint32_t oldest, uint64_t time);

/* The slot with the least time of all; PS_NO_SLOT (window.h) if none waits. */
uint32_t ps_shuffle_oldest(const ps_shuffle *shuffle);

/* How many packs wait, and the slots of one of them: how many there are. */
uint32_t ps_shuffle_packs(const ps_shuffle *shuffle);
uint32_t ps_shuffle_pack(const ps_shuffle *shuffle, uint32_t i,
                         uint32_t *slots);

/* What the next random choices depend on, besides the packs. */
void ps_shuffle_save(const ps_shuffle *shuffle, ps_saver *saver);
void ps_shuffle_load(ps_shuffle *shuffle, ps_restorer *restorer);

/* Takes one of the packs, there being one: at random, or the oldest. */
uint32_t ps_shuffle_take(ps_shuffle *shuffle, bool the_oldest,
                         uint32_t *slots);

#endif
