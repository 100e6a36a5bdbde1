/*
 * block.c - blocks of input, each of which lasts as long as somebody needs
 * what lies in it.
 *
 * The block that was given back last is taken first: it is the one that the
 * cache still knows.
 *
 * SPDX-License-Identifier: MIT
 */

#include "io/block.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"

struct ps_pool {
    ps_block *made;
    uint32_t held;
    bool closed;
    pthread_mutex_t lock; /* guards these: */
    ps_block *free;
};

uint64_t ps_pool_bytes(uint64_t blocks)
{
    uint64_t each = ps_mem_sum(
        ps_mem_array(1, PS_BLOCK_HEADROOM + PS_BLOCK_BYTES),
        ps_mem_array(1, sizeof(ps_block)));

    return ps_mem_sum(sizeof(ps_pool), ps_mem_times(each, blocks));
}

ps_result ps_pool_open(ps_pool **pool, ps_error *err)
{
    *pool = calloc(1, sizeof **pool);
    if (*pool == NULL)
        return ps_fail_memory(err);
    (void)pthread_mutex_init(&(*pool)->lock, NULL);
    return PS_OK;
}

/* Frees the blocks that nobody holds, and with the last one the pool. */
static void sweep(ps_pool *pool)
{
    ps_block **at = &pool->made;

    while (*at != NULL) {
        ps_block *b = *at;

        if (b->holders > 0) {
            at = &b->next_made;
            continue;
        }
        *at = b->next_made;
        free(b->bytes - PS_BLOCK_HEADROOM);
        free(b);
    }
    if (pool->made == NULL) {
        (void)pthread_mutex_destroy(&pool->lock);
        free(pool);
    }
}

void ps_pool_close(ps_pool *pool)
{
    if (pool == NULL)
        return;
    pool->closed = true;
    sweep(pool);
}

static ps_result make_block(ps_pool *pool, ps_block **block, ps_error *err)
{
    ps_block *b = calloc(1, sizeof *b);
    unsigned char *memory = malloc(PS_BLOCK_HEADROOM + PS_BLOCK_BYTES);

    if (b == NULL || memory == NULL) {
        free(b);
        free(memory);
        return ps_fail_memory(err);
    }
    *block = b;
    b->bytes = memory + PS_BLOCK_HEADROOM;
    b->pool = pool;
    b->next_made = pool->made;
    pool->made = b;
    return PS_OK;
}

ps_result ps_pool_take(ps_pool *pool, ps_block **block, ps_error *err)
{
    (void)pthread_mutex_lock(&pool->lock);
    *block = pool->free;
    if (*block != NULL)
        pool->free = (*block)->next;
    (void)pthread_mutex_unlock(&pool->lock);
    return *block != NULL ? PS_OK : make_block(pool, block, err);
}

void ps_pool_reclaim(ps_pool *pool)
{
    pool->free = NULL;
    for (ps_block *b = pool->made; b != NULL; b = b->next_made)
        if (b->holders == 0) {
            b->next = pool->free;
            pool->free = b;
        }
}

uint32_t ps_pool_held(const ps_pool *pool)
{
    return pool->held;
}

void ps_block_hold(ps_block *b)
{
    if (b->holders++ == 0)
        b->pool->held++;
}

void ps_block_release(ps_block *b)
{
    ps_pool *pool = b->pool;

    if (--b->holders > 0)
        return;
    pool->held--;
    if (pool->closed) {
        sweep(pool);
        return;
    }
    (void)pthread_mutex_lock(&pool->lock);
    b->next = pool->free;
    pool->free = b;
    (void)pthread_mutex_unlock(&pool->lock);
}

bool ps_block_has(const ps_block *b, const unsigned char *p, size_t n)
{
    const unsigned char *begin = b->bytes - PS_BLOCK_HEADROOM;
    size_t size = PS_BLOCK_HEADROOM + PS_BLOCK_BYTES;

    return p >= begin && n <= size && (size_t)(p - begin) <= size - n;
}
