/*
 * arena.h - numbers of a device that the host can look at.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_ARENA_H
#define BERT_ARENA_H

#include "model/ops.h"

typedef struct bert_arena {
    bert_device *device;
    size_t n;
    real *at;   /* on the device */
    real *host; /* the same where the device is on the host; else a mirror */
} bert_arena;

/* Numbers of 0, so many; all zero when it fails: no memory. */
bool bert_arena_open(bert_arena *arena, bert_device *device, size_t n);
void bert_arena_free(bert_arena *arena);

/* From the device to the mirror, and back; nothing where there is none. */
void bert_arena_fetch(const bert_arena *arena);
void bert_arena_store(const bert_arena *arena);

#endif /* BERT_ARENA_H */
