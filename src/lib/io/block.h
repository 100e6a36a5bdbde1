/*
 * block.h - blocks of input, each of which lasts as long as somebody holds it.
 *
 * The reader takes blocks from a pool, perhaps on a thread of its own.  One
 * user holds and releases them.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_IO_BLOCK_H
#define LIB_IO_BLOCK_H

#include <pthread.h>

#include "packstream.h"

/* The bytes of a block, and the room in front of them. */
#define PS_BLOCK_BYTES ((size_t)256 << 10)
#define PS_BLOCK_HEADROOM ((size_t)64 << 10)
#define PS_BLOCK_ALLOCATED (PS_BLOCK_HEADROOM + PS_BLOCK_BYTES)

/* Here, as blocks are, so that holding and releasing a block can be inline. */
typedef struct ps_pool {
    struct ps_block *all;
    uint32_t held;
    bool closed;
    pthread_mutex_t lock; /* guards these: */
    struct ps_block *free;
} ps_pool;

typedef struct ps_block {
    unsigned char *bytes;
    ps_pool *pool;
    uint32_t holders;
    struct ps_block *next; /* of those that are free */
    struct ps_block *next_of_all;
} ps_block;

/* PS_ERR_MEMORY. */
ps_result ps_pool_open(ps_pool **pool, ps_error *err);

/* Blocks that are held stay until they are released. */
void ps_pool_close(ps_pool *pool);

/* Frees blocks that were taken but never held; while nobody reads. */
void ps_pool_reclaim(ps_pool *pool);

/*
 * A block that nobody holds, and that is not given out again before somebody
 * has held and released it.  PS_ERR_MEMORY.
 */
ps_result ps_pool_take(ps_pool *pool, ps_block **block, ps_error *err);

/* A bound of the memory of a pool with so many blocks. */
uint64_t ps_pool_bytes(uint64_t blocks);

/* How many blocks are held. */
static inline uint32_t ps_pool_held(const ps_pool *pool)
{
    return pool->held;
}

static inline void ps_block_hold(ps_block *block)
{
    if (block->holders++ == 0)
        block->pool->held++;
}

/* Makes a block that nobody holds any more one that can be taken again. */
void ps_block_give_back(ps_block *block);

static inline void ps_block_release(ps_block *block)
{
    if (--block->holders == 0)
        ps_block_give_back(block);
}

/* Whether the `n` bytes at `p` lie in a block, or in front of it. */
static inline bool ps_block_has(const ps_block *block, const unsigned char *p,
                                size_t n)
{
    /* In front of the headroom it wraps around, and is too far. */
    const size_t at = (uintptr_t)p -
                      (uintptr_t)(block->bytes - PS_BLOCK_HEADROOM);

    return n <= PS_BLOCK_ALLOCATED && at <= PS_BLOCK_ALLOCATED - n;
}

#endif
