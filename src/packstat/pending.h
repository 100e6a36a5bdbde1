/*
 * pending.h - sequences of the input that no pack has held yet.
 *
 * A queue by number.  Payloads lie in blocks, one behind another, and a
 * block is free when all in it are: sequences leave nearly in the order in
 * which they came, so blocks are few and stay in the cache.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_PENDING_H
#define PACKSTAT_PENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pending_block pending_block;

/* A sequence of the input. */
typedef struct pending_entry {
    uint64_t offset; /* of its record in its file */
    uint32_t file;   /* which of the files */
    uint32_t n_tok;
    uint32_t kept;   /* tokens of it that can be in packs */
    uint32_t seen;   /* tokens of these that were */
    uint32_t pieces; /* that these were in */
    uint8_t reason;  /* that a stream of rejects gives, or 0 */
    bool outside;    /* a token is outside the vocabulary */
    bool done;       /* all of it was seen, or a fault was reported */
    unsigned char *payload; /* of the kept tokens, until it is done */
    pending_block *block;
} pending_entry;

/* All zeros is empty. */
typedef struct pending {
    pending_entry *ring;
    size_t capacity; /* a power of two, or 0 */
    uint64_t first;  /* number of the front */
    uint64_t next;   /* number of the next to come */
    pending_block *current; /* that is being filled */
    pending_block *spare;
} pending;

/* The sequence with that number, from first on and below next. */
static inline pending_entry *pending_at(const pending *b, uint64_t number)
{
    return &b->ring[number & (b->capacity - 1)];
}

/*
 * A new entry at the end, zeros but for a payload of so many bytes; NULL if
 * memory ran out.
 */
pending_entry *pending_push(pending *b, size_t payload_bytes);

/* Releases the payload of an entry, if it still has one. */
void pending_release(pending *b, pending_entry *entry);

/* Removes the front. */
void pending_pop(pending *b);

void pending_free(pending *b);

#endif
