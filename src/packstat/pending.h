/*
 * pending.h - queue of input sequences that are not in a pack yet.
 *
 * Sequences are numbered in order.  Payloads are stored contiguously in blocks,
 * and a block is freed with its last payload.  Sequences leave the queue nearly
 * in the order in which they entered it, so only a few blocks are in use, which
 * stay in the cache.
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
    uint64_t offset;        /* offset of its record in the file, in bytes */
    uint32_t file;          /* index of the file */
    uint32_t n_tok;         /* length of the sequence, in tokens */
    uint32_t kept;          /* number of tokens that packs can contain */
    uint32_t seen;          /* number of these tokens found in packs */
    uint32_t pieces;        /* number of pieces found in packs */
    uint8_t reason;         /* reason given by its reject; 0: none */
    bool outside;           /* it has an out-of-vocabulary token */
    bool done;              /* it is complete, or a fault was reported */
    unsigned char *payload; /* payload of the kept tokens; NULL once done */
    pending_block *block;   /* block that contains the payload */
} pending_entry;

/* Zero-initialise for an empty queue. */
typedef struct pending {
    pending_entry *ring;    /* owned */
    size_t capacity;        /* entries allocated, a power of two or 0 */
    uint64_t first;         /* number of the first entry */
    uint64_t next;          /* number of the next entry to add */
    pending_block *current; /* block being filled */
    pending_block *spare;   /* empty block for reuse; NULL: none */
} pending;

/* The entry with this number, which must be in [first, next). */
static inline pending_entry *pending_at(const pending *b, uint64_t number)
{
    return &b->ring[number & (b->capacity - 1)];
}

/*
 * Appends an entry, zeroed except for a payload of `payload_bytes` bytes.
 * Returns NULL if out of memory.
 */
pending_entry *pending_push(pending *b, size_t payload_bytes);

/* Frees the payload of an entry, if it still has one. */
void pending_release(pending *b, pending_entry *entry);

/* Removes the first entry. */
void pending_pop(pending *b);

void pending_free(pending *b);

#endif
