/*
 * block.h - reference-counted blocks of input.
 *
 * SPDX-License-Identifier: MIT
 *
 * A reader, possibly on its own thread, takes blocks from a pool.  A single
 * user thread holds and releases them.
 */

#ifndef LIB_IO_BLOCK_H
#define LIB_IO_BLOCK_H

#include <pthread.h>

#include "packstream.h"

/* Size of a block, and of the headroom before it, in bytes. */
#define PS_BLOCK_BYTES ((size_t)256 << 10)
#define PS_BLOCK_HEADROOM ((size_t)64 << 10)
#define PS_BLOCK_ALLOCATED (PS_BLOCK_HEADROOM + PS_BLOCK_BYTES)

/* Defined here so that hold and release can be inline. */
typedef struct ps_pool {
    struct ps_block *all;  /* list of all blocks, linked by next_of_all */
    uint32_t held;         /* number of blocks with at least one holder */
    bool closed;           /* the last release frees the pool */
    pthread_mutex_t lock;  /* guards `free` */
    struct ps_block *free; /* list of free blocks, linked by next */
} ps_pool;

typedef struct ps_block {
    unsigned char *bytes; /* PS_BLOCK_BYTES bytes, after the headroom */
    ps_pool *pool;
    uint32_t holders;      /* reference count */
    struct ps_block *next; /* in the free list */
    struct ps_block *next_of_all;
} ps_block;

/* Creates an empty pool.  PS_OK, PS_ERR_MEMORY. */
ps_result ps_pool_open(ps_pool **pool, ps_error *err);

/*
 * Frees the pool.  If blocks are held, they and the pool are freed once they
 * are released.
 */
void ps_pool_close(ps_pool *pool);

/*
 * Returns blocks that were taken but never held to the free list.  No reader
 * may be running.
 */
void ps_pool_reclaim(ps_pool *pool);

/*
 * Takes a free block from the pool.  The block returns to the pool once it has
 * been held and released.  PS_OK, PS_ERR_MEMORY.
 */
ps_result ps_pool_take(ps_pool *pool, ps_block **block, ps_error *err);

/* Upper bound on the memory of a pool with `blocks` blocks, in bytes. */
uint64_t ps_pool_bytes(uint64_t blocks);

/* Number of blocks that are held. */
static inline uint32_t ps_pool_held(const ps_pool *pool)
{
    return pool->held;
}

static inline void ps_block_hold(ps_block *block)
{
    if (block->holders++ == 0)
        block->pool->held++;
}

/* Returns a block without holders to the pool. */
void ps_block_give_back(ps_block *block);

static inline void ps_block_release(ps_block *block)
{
    if (--block->holders == 0)
        ps_block_give_back(block);
}

/* True if the `n` bytes at `p` are inside the block or its headroom. */
static inline bool ps_block_has(const ps_block *block, const unsigned char *p,
                                size_t n)
{
    /* An address below the headroom wraps around to a large offset. */
    const size_t at = (uintptr_t)p -
                      (uintptr_t)(block->bytes - PS_BLOCK_HEADROOM);

    return n <= PS_BLOCK_ALLOCATED && at <= PS_BLOCK_ALLOCATED - n;
}

#endif
