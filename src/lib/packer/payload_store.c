/*
 * payload_store.c - payloads of the sequences in the window.
 *
 * SPDX-License-Identifier: MIT
 *
 * A payload is a chain of small chunks of equal size, which are reused as soon
 * as they are free.  Only the end of each payload's last chunk is wasted, in
 * whatever order sequences arrive and are packed.  Memory is therefore bounded
 * by the contents of the window at its fullest.
 */

#include "packer/payload_store.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "base/prefetch.h"

#define CHUNK_BYTES PS_STORE_CHUNK_BYTES
#define NO_CHUNK 0u /* chunk 0 is never used, so zeros are an empty chain */
#define FIRST_SEGMENTS 8u

/* Limited by 32-bit chunk numbers. */
#define MAX_SEGMENTS (UINT32_MAX / SEGMENT_CHUNKS)

/*
 * Chunks are allocated in segments that never move, so growing the store copies
 * nothing.
 */
#define SEGMENT_CHUNKS 1024u

typedef struct segment {
    uint32_t next[SEGMENT_CHUNKS]; /* next chunk in its chain or in the free
                                      list */
    unsigned char bytes[SEGMENT_CHUNKS * CHUNK_BYTES];
} segment;

typedef struct chain {
    uint32_t first; /* NO_CHUNK: the chain is empty */
    uint32_t last;
    uint32_t left; /* unused bytes in the last chunk */
} chain;

struct ps_store {
    chain *chains; /* [slots] */
    segment **segments;
    size_t segments_capacity;
    uint32_t n_segments;
    uint32_t made; /* chunks allocated so far; higher numbers were never used */
    uint32_t free; /* first free chunk, or NO_CHUNK */
};

ps_result ps_store_open(ps_store **store, uint32_t slots, ps_error *err)
{
    ps_store *s = calloc(1, sizeof *s);

    *store = NULL;
    if (s == NULL)
        return ps_fail_memory(err);
    s->made = 1;
    /* calloc, so that the memory of unused slots is never touched. */
    s->chains = calloc(slots, sizeof *s->chains);
    if (s->chains == NULL) {
        free(s);
        return ps_fail_memory(err);
    }
    *store = s;
    return PS_OK;
}

void ps_store_free(ps_store *s)
{
    if (s == NULL)
        return;
    for (uint32_t i = 0; i < s->n_segments; i++)
        free(s->segments[i]);
    free(s->segments);
    free(s->chains);
    free(s);
}

uint64_t ps_store_bytes(uint32_t slots, uint64_t chunk_bytes)
{
    uint64_t n = chunk_bytes / CHUNK_BYTES / SEGMENT_CHUNKS + 1;
    uint64_t bytes = ps_mem_times(n, ps_mem_array(1, sizeof(segment)));

    bytes = ps_mem_sum(
        bytes, ps_mem_growing(n, FIRST_SEGMENTS, sizeof(segment *)));
    bytes = ps_mem_sum(bytes, ps_mem_array(slots, sizeof(chain)));
    return ps_mem_sum(bytes, ps_mem_array(1, sizeof(ps_store)));
}

static uint32_t *next_of(const ps_store *s, uint32_t chunk)
{
    return &s->segments[chunk / SEGMENT_CHUNKS]->next[chunk % SEGMENT_CHUNKS];
}

static unsigned char *bytes_of(const ps_store *s, uint32_t chunk)
{
    return s->segments[chunk / SEGMENT_CHUNKS]->bytes +
           (size_t)(chunk % SEGMENT_CHUNKS) * CHUNK_BYTES;
}

/* Adds a free chunk, or a new one, to a chain. */
static ps_result add_chunk(ps_store *s, chain *c, ps_error *err)
{
    uint32_t chunk = s->free;

    /* Allocate a segment when a new chunk is the first in it. */
    if (chunk == NO_CHUNK && s->made / SEGMENT_CHUNKS == s->n_segments) {
        segment **segments;

        if (s->n_segments == MAX_SEGMENTS)
            return ps_fail_memory(err);
        segments = ps_array_grow(s->segments, &s->segments_capacity,
                                 s->n_segments + 1u, FIRST_SEGMENTS,
                                 sizeof *segments);
        if (segments == NULL)
            return ps_fail_memory(err);
        s->segments = segments;
        s->segments[s->n_segments] = malloc(sizeof(segment));
        if (s->segments[s->n_segments] == NULL)
            return ps_fail_memory(err);
        s->n_segments++;
    }
    if (chunk == NO_CHUNK)
        chunk = s->made++;
    else
        s->free = *next_of(s, chunk);
    *next_of(s, chunk) = NO_CHUNK;
    if (c->last == NO_CHUNK)
        c->first = chunk;
    else
        *next_of(s, c->last) = chunk;
    c->last = chunk;
    c->left = CHUNK_BYTES;
    return PS_OK;
}

ps_result ps_store_append(ps_store *s, uint32_t slot, const void *data,
                          size_t n, ps_error *err)
{
    chain *c = &s->chains[slot];
    const unsigned char *from = data;

    while (n > 0) {
        size_t part;

        if (c->left == 0) {
            ps_result r = add_chunk(s, c, err);

            if (r != PS_OK)
                return r;
        }
        part = c->left < n ? c->left : n;
        memcpy(bytes_of(s, c->last) + CHUNK_BYTES - c->left, from, part);
        c->left -= (uint32_t)part;
        from += part;
        n -= part;
    }
    return PS_OK;
}

ps_store_cursor ps_store_start(const ps_store *s, uint32_t slot)
{
    return (ps_store_cursor){.chunk = s->chains[slot].first};
}

void ps_store_prefetch(const ps_store *s, uint32_t slot)
{
    uint32_t chunk = s->chains[slot].first;

    if (chunk != NO_CHUNK)
        ps_prefetch_bytes(bytes_of(s, chunk), CHUNK_BYTES);
}

void ps_store_read(const ps_store *s, ps_store_cursor *cursor, void *to,
                   size_t n)
{
    unsigned char *p = to;

    while (n > 0) {
        size_t part;

        if (cursor->at == CHUNK_BYTES) {
            cursor->chunk = *next_of(s, cursor->chunk);
            cursor->at = 0;
        }
        part = CHUNK_BYTES - cursor->at < n ? CHUNK_BYTES - cursor->at : n;
        memcpy(p, bytes_of(s, cursor->chunk) + cursor->at, part);
        cursor->at += (uint32_t)part;
        p += part;
        n -= part;
    }
}

void ps_store_skip(const ps_store *s, ps_store_cursor *cursor, size_t n)
{
    while (n > CHUNK_BYTES - cursor->at) {
        n -= CHUNK_BYTES - cursor->at;
        cursor->chunk = *next_of(s, cursor->chunk);
        cursor->at = 0;
    }
    cursor->at += (uint32_t)n;
}

void ps_store_clear(ps_store *s, uint32_t slot)
{
    chain *c = &s->chains[slot];

    if (c->last != NO_CHUNK) {
        *next_of(s, c->last) = s->free;
        s->free = c->first;
    }
    *c = (chain){0};
}

void ps_store_move(ps_store *s, uint32_t from, uint32_t to)
{
    s->chains[to] = s->chains[from];
    s->chains[from] = (chain){0};
}
