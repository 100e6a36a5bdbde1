/*
 * arena.c - a device array with a host mirror.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model/arena.h"

#include <stdlib.h>

bool tr_arena_open(tr_arena *arena, tr_device *device, size_t n)
{
    *arena = (tr_arena){.device = device, .n = n};
    if (n > PTRDIFF_MAX / sizeof(real) - TR_SPARE)
        return false;
    arena->at = device->ops->alloc(device, (n + TR_SPARE) * sizeof(real));
    if (arena->at)
        arena->host = device->on_host ? arena->at : calloc(n, sizeof(real));
    if (!arena->host) {
        tr_arena_free(arena);
        return false;
    }
    device->ops->fill(device, arena->at, 0, (n + TR_SPARE) * sizeof(real));
    return true;
}

void tr_arena_free(tr_arena *arena)
{
    if (arena->host != arena->at)
        free(arena->host);
    if (arena->at)
        arena->device->ops->release(arena->device, arena->at);
    *arena = (tr_arena){0};
}

void tr_arena_fetch(const tr_arena *arena)
{
    if (arena->host != arena->at)
        arena->device->ops->download(arena->device, arena->host, arena->at,
                                     arena->n * sizeof(real));
}

void tr_arena_store(const tr_arena *arena)
{
    if (arena->host != arena->at)
        arena->device->ops->upload(arena->device, arena->at, arena->host,
                                   arena->n * sizeof(real));
}
