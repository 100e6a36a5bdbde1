/*
 * block.h - blocks of input, each of which lasts as long as somebody needs
 * what lies in it.
 *
 * Blocks are taken by whoever reads, on a thread of its own perhaps; they are
 * held and released by one user.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_IO_BLOCK_H
#define LIB_IO_BLOCK_H

#include "packstream.h"

/* The bytes of a block, and those in front of them that may be used, too. */
#define PS_BLOCK_BYTES ((size_t)256 << 10)
#define PS_BLOCK_HEADROOM ((size_t)64 << 10)

typedef struct ps_pool ps_pool;

typedef struct ps_block {
    unsigned char *bytes;
    ps_pool *pool;
    uint32_t holders;
    struct ps_block *next;      /* of those that are free */
    struct ps_block *next_made; /* of all */
} ps_block;

/* PS_ERR_MEMORY. */
ps_result ps_pool_open(ps_pool **pool, ps_error *err);

/* Blocks that are held stay until they are released. */
void ps_pool_close(ps_pool *pool);

/* Nobody reads: blocks that were taken but never held are free again. */
void ps_pool_reclaim(ps_pool *pool);

/* A block that nobody holds, and that is not taken again.  PS_ERR_MEMORY. */
ps_result ps_pool_take(ps_pool *pool, ps_block **block, ps_error *err);

/* What a pool with so many blocks takes. */
uint64_t ps_pool_bytes(uint64_t blocks);

/* How many blocks are held. */
uint32_t ps_pool_held(const ps_pool *pool);

void ps_block_hold(ps_block *block);

/* After its last holder it is there to be taken again. */
void ps_block_release(ps_block *block);

/* Whether `n` bytes from `p` on lie in a block, or in front of it. */
bool ps_block_has(const ps_block *block, const unsigned char *p, size_t n);

#endif
