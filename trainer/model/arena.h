/*
 * arena.h - numbers of a device that the host can look at.
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
    real *host; /* the same where the device is on the host; else a mirror */
} tr_arena;

/* Numbers of 0, so many; all zero when it fails: no memory. */
bool tr_arena_open(tr_arena *arena, tr_device *device, size_t n);
void tr_arena_free(tr_arena *arena);

/* From the device to the mirror, and back; nothing where there is none. */
void tr_arena_fetch(const tr_arena *arena);
void tr_arena_store(const tr_arena *arena);

#endif /* TR_MODEL_ARENA_H */
