/*
 * arena.c - numbers of a device that the host can look at.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model/arena.h"

#include <stdlib.h>

bool bert_arena_open(bert_arena *arena, bert_device *device, size_t n)
{
    *arena = (bert_arena){.device = device, .n = n};
    if (n > PTRDIFF_MAX / sizeof(real) - BERT_SPARE)
        return false;
    arena->at = device->ops->alloc(device, (n + BERT_SPARE) * sizeof(real));
    if (arena->at)
        arena->host = device->on_host ? arena->at : calloc(n, sizeof(real));
    if (!arena->host) {
        bert_arena_free(arena);
        return false;
    }
    device->ops->fill(device, arena->at, 0, (n + BERT_SPARE) * sizeof(real));
    return true;
}

void bert_arena_free(bert_arena *arena)
{
    if (arena->host != arena->at)
        free(arena->host);
    if (arena->at)
        arena->device->ops->release(arena->device, arena->at);
    *arena = (bert_arena){0};
}

void bert_arena_fetch(const bert_arena *arena)
{
    if (arena->host != arena->at)
        arena->device->ops->download(arena->device, arena->host, arena->at,
                                     arena->n * sizeof(real));
}

void bert_arena_store(const bert_arena *arena)
{
    if (arena->host != arena->at)
        arena->device->ops->upload(arena->device, arena->at, arena->host,
                                   arena->n * sizeof(real));
}
