/*
 * store.c - payloads of the sequences in the window, held once.
 *
 * Payloads lie in chains of small chunks of one size.  Chunks are reused as
 * soon as they are free, so whatever the order in which sequences come and
 * go, no room is lost but the end of each last chunk: the memory is bounded
 * by what the window holds at its fullest.
 *
 * SPDX-License-Identifier: MIT
 */

#include "store.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "error.h"
#include "prefetch.h"

#define CHUNK_BYTES PS_STORE_CHUNK_BYTES
#define NO_CHUNK UINT32_MAX

typedef struct chain {
    uint32_t first;
    uint32_t last;
    uint32_t used; /* bytes of the last chunk */
} chain;

struct ps_store {
    chain *chains; /* by slot */
    unsigned char *bytes; /* size x CHUNK_BYTES */
    uint32_t *next;       /* of each chunk, in its chain or the free list */
    uint32_t size;        /* chunks */
    uint32_t free;
};

static const chain empty_chain = {NO_CHUNK, NO_CHUNK, CHUNK_BYTES};

ps_result ps_store_open(ps_store **store, uint32_t slots, ps_error *err)
{
    ps_store *s = calloc(1, sizeof *s);

    *store = NULL;
    if (s == NULL)
        return ps_fail_memory(err);
    s->free = NO_CHUNK;
    s->chains = malloc(slots * sizeof *s->chains);
    if (s->chains == NULL) {
        free(s);
        return ps_fail_memory(err);
    }
    for (uint32_t i = 0; i < slots; i++)
        s->chains[i] = empty_chain;
    *store = s;
    return PS_OK;
}

void ps_store_free(ps_store *s)
{
    if (s == NULL)
        return;
    free(s->chains);
    free(s->bytes);
    free(s->next);
    free(s);
}

/* Adds half as many chunks again; they become the free list. */
static ps_result grow(ps_store *s, ps_error *err)
{
    uint32_t size = s->size < 64 ? 128 : s->size + s->size / 2;
    unsigned char *bytes;
    uint32_t *next;
    size_t n;

    if (size < s->size || size == NO_CHUNK ||
        !size_product(size, CHUNK_BYTES, &n))
        return ps_fail_memory(err);
    bytes = realloc(s->bytes, n);
    if (bytes != NULL)
        s->bytes = bytes;
    next = realloc(s->next, (size_t)size * sizeof *next);
    if (next != NULL)
        s->next = next;
    if (bytes == NULL || next == NULL)
        return ps_fail_memory(err);
    for (uint32_t c = s->size; c < size; c++)
        next[c] = c + 1 < size ? c + 1 : NO_CHUNK;
    s->free = s->size;
    s->size = size;
    return PS_OK;
}

static ps_result add_chunk(ps_store *s, chain *c, ps_error *err)
{
    uint32_t chunk;

    if (s->free == NO_CHUNK) {
        ps_result r = grow(s, err);

        if (r != PS_OK)
            return r;
    }
    chunk = s->free;
    s->free = s->next[chunk];
    s->next[chunk] = NO_CHUNK;
    if (c->last == NO_CHUNK)
        c->first = chunk;
    else
        s->next[c->last] = chunk;
    c->last = chunk;
    c->used = 0;
    return PS_OK;
}

ps_result ps_store_append(ps_store *s, uint32_t slot, const void *data,
                          size_t n, ps_error *err)
{
    chain *c = &s->chains[slot];
    const unsigned char *from = data;

    while (n > 0) {
        size_t part;

        if (c->used == CHUNK_BYTES) {
            ps_result r = add_chunk(s, c, err);

            if (r != PS_OK)
                return r;
        }
        part = CHUNK_BYTES - c->used < n ? CHUNK_BYTES - c->used : n;
        memcpy(s->bytes + (size_t)c->last * CHUNK_BYTES + c->used, from,
               part);
        c->used += (uint32_t)part;
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
        ps_prefetch_bytes(s->bytes + (size_t)chunk * CHUNK_BYTES,
                          CHUNK_BYTES);
}

void ps_store_read(const ps_store *s, ps_store_cursor *cursor, void *to,
                   size_t n)
{
    unsigned char *p = to;

    while (n > 0) {
        size_t part;

        if (cursor->at == CHUNK_BYTES) {
            cursor->chunk = s->next[cursor->chunk];
            cursor->at = 0;
        }
        part = CHUNK_BYTES - cursor->at < n ? CHUNK_BYTES - cursor->at : n;
        memcpy(p, s->bytes + (size_t)cursor->chunk * CHUNK_BYTES + cursor->at,
               part);
        cursor->at += (uint32_t)part;
        p += part;
        n -= part;
    }
}

void ps_store_clear(ps_store *s, uint32_t slot)
{
    chain *c = &s->chains[slot];

    if (c->last != NO_CHUNK) {
        s->next[c->last] = s->free;
        s->free = c->first;
    }
    *c = empty_chain;
}
