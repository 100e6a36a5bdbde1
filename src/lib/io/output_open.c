/*
 * output_open.c - how a sink begins and ends: its blocks, its threads and its
 * seek table.
 *
 * SPDX-License-Identifier: MIT
 */

#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "base/thread.h"
#include "io/fd.h"
#include "io/output_internal.h"

#define SPARE_BLOCKS 4 /* beyond those that threads are busy with */

/* More than one cannot write plain bytes in order. */
static uint32_t threads_for(const ps_output_options *o)
{
    return !o->compressed && o->threads > 1 ? 1 : o->threads;
}

static uint32_t blocks_for(const ps_output_options *o)
{
    uint32_t threads = threads_for(o);

    return threads == 0 ? 1 : threads + SPARE_BLOCKS;
}

static size_t block_size(const ps_output_options *o)
{
    if (o->compressed)
        return o->frame;
    return o->largest > PS_IO_BYTES ? o->largest : PS_IO_BYTES;
}

uint64_t ps_output_bytes(const ps_output_options *o)
{
    uint32_t threads = threads_for(o);
    uint64_t blocks = ps_mem_times(blocks_for(o),
                                   ps_mem_array(1, block_size(o)));
    uint64_t all = ps_mem_times(
        threads, PS_THREAD_BYTES + sizeof(pthread_t));

    all = ps_mem_sum(all, blocks);
    all = ps_mem_sum(all, ps_mem_array(blocks_for(o),
                                       sizeof(ps_output_block)));
    if (o->compressed)
        all = ps_mem_sum(
            all, ps_mem_times(threads == 0 ? 1 : threads,
                              ps_compressor_bytes(o->level, o->frame) +
                              sizeof(ps_compressor *)));
    if (o->compressed && o->max_frames != 0)
        all = ps_mem_sum(all, ps_seek_table_takes(o->max_frames));
    return ps_mem_sum(all, sizeof(ps_output));
}

static ps_result open_blocks(ps_output *s, ps_error *err)
{
    const ps_output_options *o = &s->options;

    s->n_blocks = blocks_for(o);
    s->size = block_size(o);
    s->blocks = calloc(s->n_blocks, sizeof *s->blocks);
    if (s->blocks == NULL)
        return ps_fail_memory(err);
    for (uint32_t i = 0; i < s->n_blocks; i++) {
        s->blocks[i].bytes = malloc(s->size);
        if (s->blocks[i].bytes == NULL)
            return ps_fail_memory(err);
    }
    return PS_OK;
}

/* Empty, or with the frames that were written before. */
static ps_result open_table(ps_output *s, ps_error *err)
{
    const ps_output_options *o = &s->options;
    ps_result r;

    if (o->table == NULL)
        return ps_seek_table_open(&s->table, err);
    if (o->written > UINT64_MAX - o->table_bytes)
        return ps_fail(err, PS_ERR_CORRUPT, "the output cannot be so long");
    r = ps_seek_table_decode(&s->table, o->table, o->table_bytes,
                             o->written + o->table_bytes, err);
    if (r == PS_OK && ps_seek_table_bytes(s->table) != o->written)
        r = ps_fail(err, PS_ERR_CORRUPT,
                    "the seek table is not that of the output");
    return r;
}

static ps_result open_makers(ps_output *s, ps_error *err)
{
    ps_result r = open_table(s, err);

    if (r != PS_OK)
        return r;
    if (s->options.max_frames != 0)
        ps_seek_table_limit(s->table, s->options.max_frames);
    s->n_makers = s->options.threads == 0 ? 1 : s->options.threads;
    s->makers = calloc(s->n_makers, sizeof(ps_compressor *));
    if (s->makers == NULL)
        return ps_fail_memory(err);
    for (uint32_t i = 0; i < s->n_makers && r == PS_OK; i++)
        r = ps_compressor_open(&s->makers[i], s->options.level, err);
    return r;
}

static ps_result start_threads(ps_output *s, ps_error *err)
{
    ps_result r = PS_OK;

    if (s->options.threads == 0)
        return PS_OK;
    s->threads = calloc(s->options.threads, sizeof *s->threads);
    if (s->threads == NULL)
        return ps_fail_memory(err);
    /* With fewer it takes longer, and with none the caller does it. */
    while (r == PS_OK && s->n_threads < s->options.threads) {
        r = ps_thread_start(&s->threads[s->n_threads], ps_output_work, s, err);
        s->n_threads += r == PS_OK;
    }
    return PS_OK;
}

ps_result ps_output_open(ps_output **output, int fd,
                         const ps_output_options *options,
                         ps_error *err)
{
    ps_output *s = calloc(1, sizeof *s);
    ps_result r;

    *output = NULL;
    if (s == NULL)
        return ps_fail_memory(err);
    s->fd = fd;
    s->options = *options;
    s->written = options->written;
    if (options->seal != NULL)
        s->seal = *options->seal;
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->work, NULL);
    (void)pthread_cond_init(&s->room, NULL);
    s->options.threads = threads_for(options);
    r = open_blocks(s, err);
    if (r == PS_OK && s->options.compressed)
        r = open_makers(s, err);
    if (r == PS_OK)
        r = start_threads(s, err);
    if (r != PS_OK) {
        ps_output_free(s);
        return r;
    }
    ps_widen_pipe(fd);
    *output = s;
    return PS_OK;
}

static void stop_threads(ps_output *s)
{
    (void)pthread_mutex_lock(&s->lock);
    s->stop = true;
    (void)pthread_cond_broadcast(&s->work);
    (void)pthread_mutex_unlock(&s->lock);
    for (uint32_t i = 0; i < s->n_threads; i++)
        (void)pthread_join(s->threads[i], NULL);
    free(s->threads);
}

void ps_output_free(ps_output *s)
{
    if (s == NULL)
        return;
    stop_threads(s);
    for (uint32_t i = 0; s->blocks != NULL && i < s->n_blocks; i++)
        free(s->blocks[i].bytes);
    for (uint32_t i = 0; s->makers != NULL && i < s->n_makers; i++)
        ps_compressor_free(s->makers[i]);
    ps_seek_table_free(s->table);
    free(s->blocks);
    free(s->makers);
    (void)pthread_cond_destroy(&s->room);
    (void)pthread_cond_destroy(&s->work);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}
