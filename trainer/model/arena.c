/*
 * arena.c - a device array with a host mirror.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model/arena.h"

#include <stdlib.h>

static bool open_arena(tr_arena *arena, tr_device *device, size_t n,
                       const tr_shards *shards)
{
    const size_t numbers = (shards ? shards->numbers : n) + TR_SPARE;

    *arena = (tr_arena){.device = device, .n = n, .shards = shards};
    if (n > PTRDIFF_MAX / sizeof(real) - TR_SPARE)
        return false;
    arena->at = device->ops->alloc(device, numbers * sizeof(real));
    if (arena->at)
        arena->host = device->on_host ? arena->at : calloc(n, sizeof(real));
    if (!arena->host) {
        tr_arena_free(arena);
        return false;
    }
    device->ops->fill(device, arena->at, 0, numbers * sizeof(real));
    return true;
}

bool tr_arena_open(tr_arena *arena, tr_device *device, size_t n)
{
    return open_arena(arena, device, n, NULL);
}

bool tr_arena_open_shards(tr_arena *arena, tr_device *device, size_t n)
{
    return open_arena(arena, device, n, device->shards);
}

void tr_arena_free(tr_arena *arena)
{
    if (arena->host != arena->at)
        free(arena->host);
    if (arena->at)
        arena->device->ops->release(arena->device, arena->at);
    *arena = (tr_arena){0};
}

/* Copies each part that the device has between the device and the mirror. */
static void copy(const tr_arena *arena, bool to_host)
{
    static const tr_shards none = {0};
    tr_shard all = {.end = arena->n};
    const tr_shards whole = {.list = &all, .n = 1};
    const tr_shards *const parts = arena->host == arena->at ? &none
                                   : arena->shards ? arena->shards : &whole;
    tr_device *const d = arena->device;

    for (size_t i = 0; i < parts->n; i++) {
        const tr_shard *const s = &parts->list[i];
        const size_t bytes = (s->end - s->begin) * sizeof(real);

        if (to_host)
            d->ops->download(d, arena->host + s->begin, arena->at + s->at,
                             bytes);
        else
            d->ops->upload(d, arena->at + s->at, arena->host + s->begin,
                           bytes);
    }
}

void tr_arena_fetch(const tr_arena *arena)
{
    copy(arena, true);
}

void tr_arena_store(const tr_arena *arena)
{
    copy(arena, false);
}
