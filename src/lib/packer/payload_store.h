/*
 * payload_store.h - payloads of the sequences in the window.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_PACKER_PAYLOAD_STORE_H
#define LIB_PACKER_PAYLOAD_STORE_H

#include "packstream.h"

typedef struct ps_store ps_store;

/* Creates a store with `slots` empty slots.  PS_OK, PS_ERR_MEMORY. */
ps_result ps_store_open(ps_store **store, uint32_t slots, ps_error *err);
void ps_store_free(ps_store *store);

/*
 * Upper bound, in bytes, on the memory of a store whose chunks total at most
 * `chunk_bytes`.
 */
uint64_t ps_store_bytes(uint32_t slots, uint64_t chunk_bytes);

/* Appends bytes to the contents of a slot.  PS_OK, PS_ERR_MEMORY. */
ps_result ps_store_append(ps_store *store, uint32_t slot, const void *data,
                          size_t n, ps_error *err);

/* A read position in the contents of a slot. */
typedef struct ps_store_cursor {
    uint32_t chunk; /* number of the chunk */
    uint32_t at;    /* byte in the chunk */
} ps_store_cursor;

ps_store_cursor ps_store_start(const ps_store *store, uint32_t slot);

/* Prefetches the first chunk of a slot. */
void ps_store_prefetch(const ps_store *store, uint32_t slot);

/* Copies the next `n` bytes, which must exist, and advances the cursor. */
void ps_store_read(const ps_store *store, ps_store_cursor *cursor, void *to,
                   size_t n);

/* Advances the cursor by `n` bytes, which must exist. */
void ps_store_skip(const ps_store *store, ps_store_cursor *cursor, size_t n);

/* Contents of a slot take whole chunks of this size. */
#define PS_STORE_CHUNK_BYTES 256u

/* Moves the contents of a slot to another, which is empty. */
void ps_store_move(ps_store *store, uint32_t from, uint32_t to);

/* Empties a slot. */
void ps_store_clear(ps_store *store, uint32_t slot);

#endif
