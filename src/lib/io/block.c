/*
 * block.c - reference-counted blocks of input.
 *
 * SPDX-License-Identifier: MIT
 *
 * Free blocks are reused last in, first out, because the most recently released
 * block is the most likely to be in the cache.
 */

#include "io/block.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"

uint64_t ps_pool_bytes(uint64_t blocks)
{
    uint64_t each = ps_mem_sum(
        ps_mem_array(1, PS_BLOCK_ALLOCATED),
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

/* Frees unreferenced blocks, and the pool once it has no blocks. */
static void sweep(ps_pool *pool)
{
    ps_block **at = &pool->all;

    while (*at != NULL) {
        ps_block *b = *at;

        if (b->holders > 0) {
            at = &b->next_of_all;
            continue;
        }
        *at = b->next_of_all;
        free(b->bytes - PS_BLOCK_HEADROOM);
        free(b);
    }
    if (pool->all == NULL) {
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

ps_result ps_pool_take(ps_pool *pool, ps_block **block, ps_error *err)
{
    ps_block *b;
    unsigned char *memory;

    (void)pthread_mutex_lock(&pool->lock);
    *block = pool->free;
    if (*block != NULL)
        pool->free = (*block)->next;
    (void)pthread_mutex_unlock(&pool->lock);
    if (*block != NULL)
        return PS_OK;

    b = calloc(1, sizeof *b);
    memory = malloc(PS_BLOCK_ALLOCATED);
    if (b == NULL || memory == NULL) {
        free(b);
        free(memory);
        return ps_fail_memory(err);
    }
    b->bytes = memory + PS_BLOCK_HEADROOM;
    b->pool = pool;
    b->next_of_all = pool->all;
    pool->all = b;
    *block = b;
    return PS_OK;
}

void ps_pool_reclaim(ps_pool *pool)
{
    pool->free = NULL;
    for (ps_block *b = pool->all; b != NULL; b = b->next_of_all)
        if (b->holders == 0) {
            b->next = pool->free;
            pool->free = b;
        }
}

void ps_block_give_back(ps_block *b)
{
    ps_pool *pool = b->pool;

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
