/*
 * pending.c - queue of input sequences that are not in a pack yet.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstat/pending.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 1024, BLOCK_BYTES = 1 << 18 };

struct pending_block {
    size_t size; /* bytes allocated */
    size_t used; /* bytes in use */
    size_t live; /* number of payloads in the block */
    unsigned char bytes[];
};

/* Frees an empty block, but keeps a block of the usual size for reuse. */
static void discard(pending *b, pending_block *block)
{
    block->used = 0;
    if (b->spare == NULL && block->size == BLOCK_BYTES)
        b->spare = block;
    else
        free(block);
}

/* Ensures that `current` has `bytes` free bytes. */
static bool reserve(pending *b, size_t bytes)
{
    const size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
    pending_block *block = b->spare;

    if (b->current != NULL && b->current->size - b->current->used >= bytes)
        return true;
    if (block != NULL && block->size >= size) {
        b->spare = NULL;
    } else {
        if (size > SIZE_MAX - sizeof(*block))
            return false;
        block = malloc(sizeof(*block) + size);
        if (block == NULL)
            return false;
        *block = (pending_block){.size = size};
    }
    /* A block that has payloads is freed together with the last of them. */
    if (b->current != NULL && b->current->live == 0)
        discard(b, b->current);
    b->current = block;
    return true;
}

pending_entry *pending_push(pending *b, size_t payload_bytes)
{
    pending_entry *entry;

    /* Double the ring; entries keep their numbers. */
    if (b->next - b->first == b->capacity) {
        const size_t capacity =
            b->capacity == 0 ? FIRST_CAPACITY : b->capacity * 2;
        pending_entry *ring;

        if (capacity > SIZE_MAX / sizeof(*ring))
            return NULL;
        ring = malloc(capacity * sizeof(*ring));
        if (ring == NULL)
            return NULL;
        for (uint64_t i = b->first; i < b->next; i++)
            ring[i & (capacity - 1)] = *pending_at(b, i);
        free(b->ring);
        b->ring = ring;
        b->capacity = capacity;
    }

    entry = pending_at(b, b->next);
    *entry = (pending_entry){0};
    if (payload_bytes > 0) {
        if (!reserve(b, payload_bytes))
            return NULL;
        entry->block = b->current;
        entry->payload = entry->block->bytes + entry->block->used;
        entry->block->used += payload_bytes;
        entry->block->live++;
    }
    b->next++;
    return entry;
}

void pending_release(pending *b, pending_entry *entry)
{
    pending_block *block = entry->block;

    if (block == NULL)
        return;
    entry->block = NULL;
    entry->payload = NULL;
    if (--block->live > 0)
        return;
    if (block == b->current)
        block->used = 0;
    else
        discard(b, block);
}

void pending_pop(pending *b)
{
    pending_release(b, pending_at(b, b->first));
    b->first++;
}

void pending_free(pending *b)
{
    while (b->first < b->next)
        pending_pop(b);
    free(b->current);
    free(b->spare);
    free(b->ring);
    *b = (pending){0};
}
