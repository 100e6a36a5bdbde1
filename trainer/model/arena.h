/*
 * arena.h - a device array with a host mirror.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_MODEL_ARENA_H
#define TR_MODEL_ARENA_H

#include "model/ops.h"

typedef struct tr_arena {
    tr_device *device;
    size_t n;
    const tr_shards *shards; /* the numbers on the device; NULL: all n */
    real *at;   /* on the device */
    real *host; /* the mirror; equals `at` if the device is the host */
} tr_arena;

/* Allocates n zeros.  Returns false if out of memory. */
bool tr_arena_open(tr_arena *arena, tr_device *device, size_t n);

/*
 * Does the same, but allocates only the device's shards on the device.  fetch
 * and store then copy only these; the mirror has all n numbers.
 */
bool tr_arena_open_shards(tr_arena *arena, tr_device *device, size_t n);
void tr_arena_free(tr_arena *arena);

/*
 * fetch copies from the device to the mirror, store from the mirror to the
 * device.
 */
void tr_arena_fetch(const tr_arena *arena);
void tr_arena_store(const tr_arena *arena);

#endif /* TR_MODEL_ARENA_H */
