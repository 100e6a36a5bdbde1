/*
 * arena.h - an array of a device with a mirror on the host.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_MODEL_ARENA_H
#define TR_MODEL_ARENA_H

#include "model/ops.h"

typedef struct tr_arena {
    tr_device *device;
    size_t n;
    real *at;   /* on the device */
    real *host; /* the mirror; `at` itself if the device is on the host */
} tr_arena;

/* Allocates n numbers of 0.  False: no memory. */
bool tr_arena_open(tr_arena *arena, tr_device *device, size_t n);
void tr_arena_free(tr_arena *arena);

/* Copy the device's numbers to the mirror, and back. */
void tr_arena_fetch(const tr_arena *arena);
void tr_arena_store(const tr_arena *arena);

#endif /* TR_MODEL_ARENA_H */
