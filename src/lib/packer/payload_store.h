/*
 * payload_store.h - payloads of the sequences in the window, held once.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_PACKER_PAYLOAD_STORE_H
#define LIB_PACKER_PAYLOAD_STORE_H

#include "packstream.h"

typedef struct ps_store ps_store;

/* For slots 0..slots-1, all empty.  PS_ERR_MEMORY. */
ps_result ps_store_open(ps_store **store, uint32_t slots, ps_error *err);
void ps_store_free(ps_store *store);

/* The most that it takes with chunks of so many bytes, all slots together. */
uint64_t ps_store_bytes(uint32_t slots, uint64_t chunk_bytes);

/* Appends bytes to what a slot holds.  PS_ERR_MEMORY. */
ps_result ps_store_append(ps_store *store, uint32_t slot, const void *data,
                          size_t n, ps_error *err);

/* A place in what a slot holds; reading moves it on. */
typedef struct ps_store_cursor {
    uint32_t chunk;
    uint32_t at;
} ps_store_cursor;

ps_store_cursor ps_store_start(const ps_store *store, uint32_t slot);

/* Soon to be read: what a slot holds had better be in the cache. */
void ps_store_prefetch(const ps_store *store, uint32_t slot);

/* Copies the next `n` bytes, which must be there, to `to`. */
void ps_store_read(const ps_store *store, ps_store_cursor *cursor, void *to,
                   size_t n);

/* What a slot holds takes up whole chunks of so many bytes. */
#define PS_STORE_CHUNK_BYTES 256u

/* Empties a slot. */
void ps_store_clear(ps_store *store, uint32_t slot);

#endif
