/*
 * output.c - buffered output with blocks that are built in place and written,
 * or compressed and written, on threads.
 *
 * SPDX-License-Identifier: MIT
 *
 * The blocks form a ring, and the caller fills them in order.  If the output is
 * compressed, each thread takes the next full block and compresses it; then the
 * blocks are written in order.  A single thread writes uncompressed blocks.
 */

#include "io/output.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "base/thread.h"
#include "file_end.h"
#include "io/fd.h"
#include "io/seek_table.h"
#include "io/zstd_frame.h"

#define FEW 2          /* number of full blocks that wakes the writer thread */

/* Spare blocks in the ring, in addition to one per thread, in bytes. */
#define SPARE_BYTES (4 * PS_IO_BYTES)
#define SMALLEST (PS_IO_BYTES / 64) /* minimum size of a block, bytes */
#define MIN_SPARE 2                 /* limits of spare blocks, in blocks */
#define MAX_SPARE 64

typedef struct block {
    unsigned char *bytes; /* [size], owned by the output */
    size_t used;          /* bytes in use */
    bool finalize;        /* finalize the block before it is written */
    bool drop;            /* do not write the block */
} block;

struct ps_output {
    int fd; /* not owned */
    ps_output_options options;
    ps_output_finalizer finalizer; /* functions are NULL if there is none */
    size_t size;                   /* of a block, bytes */
    block *blocks;                 /* ring of n_blocks */
    uint32_t n_blocks;             /* at least 1 */
    ps_compressor **compressors;   /* one per thread, or one for the caller */
    uint32_t n_compressors;
    ps_seek_table *table; /* of the frames; NULL if not compressed */
    pthread_t *threads;
    uint32_t n_threads;

    /* Used by the writer thread, or by the caller if there is no thread. */
    file_end end;
    uint64_t written; /* bytes of output, including earlier runs */

    /*
     * Block numbers, counted from 0: blocks below `filling` are full, blocks
     * below `taken` belong to a thread, and blocks below `done` have been
     * written.  `lock` guards these and all members below.
     */
    pthread_mutex_t lock;
    pthread_cond_t work;     /* signalled when a block is full */
    pthread_cond_t progress; /* signalled when a block has been written */
    uint64_t filling;
    uint64_t taken;
    uint64_t done;
    uint32_t n_started; /* threads that have claimed a compressor */
    bool stop;
    bool failed;
    ps_error err;
};

static block *block_at(const ps_output *out, uint64_t number)
{
    return &out->blocks[number % out->n_blocks];
}

static block *current(const ps_output *out)
{
    return block_at(out, out->filling);
}

/* ---- Writing ---- */

/* Records the first failure.  No block is written after a failure. */
static void note_failure(ps_output *out, ps_result r, const ps_error *err)
{
    if (r == PS_OK || out->failed)
        return;
    out->failed = true;
    out->err = *err;
}

static ps_result give_failure(const ps_output *out, ps_error *err)
{
    if (!out->failed)
        return PS_OK;
    if (err != NULL)
        *err = out->err;
    return out->err.code;
}

/* Finalizes a block.  Runs on any thread. */
static void finalize(const ps_output *out, const block *b)
{
    if (b->finalize)
        out->finalizer.finalize(out->finalizer.context, b->bytes);
}

/* Passes a finalized block to `follow`, in output order. */
static void follow(const ps_output *out, const block *b)
{
    if (b->finalize)
        out->finalizer.follow(out->finalizer.context, b->bytes);
}

static ps_result check_end(ps_output *out, ps_error *err)
{
    return file_end_holds(&out->end, out->fd)
               ? PS_OK
               : ps_fail(err, PS_ERR_IO, FILE_END_CUT, out->end.size,
                         out->end.at);
}

static ps_result write_counted(ps_output *out, const unsigned char *bytes,
                               size_t n, ps_error *err)
{
    const ps_output_options *o = &out->options;
    ps_result r;

    if (o->write == NULL) {
        r = check_end(out, err);
        if (r == PS_OK)
            r = ps_write_all(out->fd, bytes, n, err);
        if (r == PS_OK)
            file_end_add(&out->end, out->fd, n);
    } else {
        *err = (ps_error){0};
        r = n == 0 ? PS_OK : o->write(o->write_context, bytes, n, err);
        if (r != PS_OK && err->code != r)
            r = ps_fail(err, r, "the write hook refused the output: %s",
                        ps_result_text(r));
    }
    out->written += r == PS_OK ? n : 0;
    return r;
}

static void block_done(ps_output *out)
{
    block *b = block_at(out, out->done);

    b->used = 0;
    b->finalize = b->drop = false;
    out->done++;
    /*
     * Wake the caller only when half of the ring is free, so that it can fill
     * several blocks per wakeup.
     */
    if (out->options.compressed ||
        out->filling - out->done <= out->n_blocks / 2)
        (void)pthread_cond_broadcast(&out->progress);
}

/*
 * Writes a full block.  Called with the lock held, which is released while
 * writing.
 */
static void write_plain(ps_output *out)
{
    const block *b = block_at(out, out->taken++);
    bool failed = out->failed;
    ps_result r = PS_OK;
    ps_error err;

    (void)pthread_mutex_unlock(&out->lock);
    finalize(out, b);
    follow(out, b);
    if (!failed && !b->drop)
        r = write_counted(out, b->bytes, b->used, &err);
    (void)pthread_mutex_lock(&out->lock);
    note_failure(out, r, &err);
    block_done(out);
}

/* Compresses a full block, and writes it after all earlier blocks. */
static void write_compressed(ps_output *out, ps_compressor *compressor)
{
    uint64_t number = out->taken++;
    const block *b = block_at(out, number);
    bool failed = out->failed;
    const unsigned char *frame = NULL;
    size_t n = 0;
    ps_result r = PS_OK;
    ps_error err;

    (void)pthread_mutex_unlock(&out->lock);
    finalize(out, b);
    if (!failed && !b->drop)
        r = ps_compress_frame(compressor, b->bytes, b->used, &frame, &n, &err);

    (void)pthread_mutex_lock(&out->lock);
    while (out->done != number)
        (void)pthread_cond_wait(&out->progress, &out->lock);
    failed = out->failed;
    (void)pthread_mutex_unlock(&out->lock);

    follow(out, b);
    failed = failed || b->drop;
    if (!failed && r == PS_OK)
        r = write_counted(out, frame, n, &err);
    if (!failed && r == PS_OK)
        r = ps_seek_table_add(out->table, n, b->used, &err);
    (void)pthread_mutex_lock(&out->lock);
    note_failure(out, r, &err);
    block_done(out);
}

static void *run_thread(void *context)
{
    ps_output *out = context;
    ps_compressor *compressor = NULL;

    (void)pthread_mutex_lock(&out->lock);
    if (out->options.compressed)
        compressor = out->compressors[out->n_started++];
    for (;;) {
        if (compressor == NULL && out->taken < out->filling)
            write_plain(out);
        else if (compressor != NULL && out->taken < out->filling)
            write_compressed(out, compressor);
        else if (out->stop)
            break;
        else
            (void)pthread_cond_wait(&out->work, &out->lock);
    }
    (void)pthread_mutex_unlock(&out->lock);
    return NULL;
}

/* ---- The caller's side ---- */

/* Queues the current block for writing, even if it is not full. */
static ps_result hand_over(ps_output *out, ps_error *err)
{
    ps_result r;

    (void)pthread_mutex_lock(&out->lock);
    out->filling++;
    if (out->n_threads > 0) {
        /* Waking a thread costs almost as much as writing a block. */
        if (out->options.compressed || out->filling - out->taken >= FEW)
            (void)pthread_cond_signal(&out->work);
    } else if (out->options.compressed) {
        write_compressed(out, out->compressors[0]);
    } else {
        write_plain(out);
    }
    while (out->filling - out->done == out->n_blocks)
        (void)pthread_cond_wait(&out->progress, &out->lock);
    r = give_failure(out, err);
    (void)pthread_mutex_unlock(&out->lock);
    return r;
}

unsigned char *ps_output_block(ps_output *out)
{
    return current(out)->bytes;
}

ps_result ps_output_commit(ps_output *out, size_t n, bool keep, ps_error *err)
{
    block *b = current(out);

    b->used = n;
    b->finalize = out->finalizer.finalize != NULL;
    b->drop = !keep;
    return hand_over(out, err);
}

ps_result ps_output_put(ps_output *out, const void *data, size_t n,
                        ps_error *err)
{
    const unsigned char *from = data;

    while (n > 0) {
        block *b = current(out);
        size_t part = n < out->size - b->used ? n : out->size - b->used;

        memcpy(b->bytes + b->used, from, part);
        b->used += part;
        from += part;
        n -= part;
        if (n > 0) {
            ps_result r = hand_over(out, err);

            if (r != PS_OK)
                return r;
        }
    }
    return PS_OK;
}

ps_result ps_output_cut(ps_output *out, ps_error *err)
{
    return current(out)->used == 0 ? PS_OK : hand_over(out, err);
}

ps_result ps_output_push(ps_output *out, ps_error *err)
{
    ps_result r;

    (void)pthread_mutex_lock(&out->lock);
    if (out->taken < out->filling)
        (void)pthread_cond_signal(&out->work);
    r = give_failure(out, err);
    (void)pthread_mutex_unlock(&out->lock);
    return r;
}

ps_result ps_output_flush(ps_output *out, ps_error *err)
{
    ps_result r = ps_output_cut(out, err);

    if (r == PS_OK)
        r = ps_output_push(out, err);
    if (r != PS_OK)
        return r;
    (void)pthread_mutex_lock(&out->lock);
    while (out->done < out->filling)
        (void)pthread_cond_wait(&out->progress, &out->lock);
    r = give_failure(out, err);
    (void)pthread_mutex_unlock(&out->lock);
    return r;
}

ps_result ps_output_where(ps_output *out, ps_output_place *place,
                          ps_error *err)
{
    ps_result r = ps_output_flush(out, err);

    *place = (ps_output_place){.written = out->written};
    if (r == PS_OK && out->options.compressed && out->table->frames > 0)
        ps_seek_table_encode(out->table, &place->table, &place->table_bytes);
    return r;
}

uint64_t ps_output_written(const ps_output *out)
{
    return out->written;
}

ps_result ps_output_finish(ps_output *out, ps_error *err)
{
    const unsigned char *table;
    size_t n;
    ps_result r = ps_output_flush(out, err);

    if (r == PS_OK && out->options.compressed) {
        ps_seek_table_encode(out->table, &table, &n);
        r = write_counted(out, table, n, err);
    }
    if (r == PS_OK && out->options.write == NULL)
        r = check_end(out, err);
    return r;
}

/* ---- Opening and closing ---- */

/* Number of threads, and the ring needed to keep them busy. */
typedef struct ring_shape {
    uint32_t threads;
    uint32_t blocks;
    size_t size; /* size of a block, bytes */
} ring_shape;

static ring_shape ring_for(const ps_output_options *o)
{
    /*
     * If compressed, bytes added by ps_output_put, such as END, must fit one
     * frame and thus one block.  Otherwise `largest` bytes are enough.
     */
    const bool small = !o->compressed && o->largest > 0;
    const size_t least = small ? SMALLEST : PS_IO_BYTES;
    const size_t size = o->largest > least ? o->largest : least;
    const size_t spare = SPARE_BYTES / size;
    ring_shape ring = {.threads = o->threads, .blocks = 1, .size = size};

    /* Uncompressed blocks are only written in order: one thread is enough. */
    if (!o->compressed && o->threads > 1)
        ring.threads = 1;
    if (ring.threads > 0)
        ring.blocks = ring.threads + (spare < MIN_SPARE   ? MIN_SPARE
                                      : spare < MAX_SPARE ? (uint32_t)spare
                                                          : MAX_SPARE);
    return ring;
}

uint64_t ps_output_bytes(const ps_output_options *o)
{
    const ring_shape ring = ring_for(o);
    uint64_t all = ps_mem_times(
        ring.threads, PS_THREAD_BYTES + sizeof(pthread_t));

    all = ps_mem_sum(all, ps_mem_times(ring.blocks,
                                       ps_mem_array(1, ring.size)));
    all = ps_mem_sum(all, ps_mem_array(ring.blocks, sizeof(block)));
    if (o->compressed)
        all = ps_mem_sum(
            all, ps_mem_times(ring.threads == 0 ? 1 : ring.threads,
                              ps_compressor_bytes(o->level, ring.size) +
                              sizeof(ps_compressor *)));
    if (o->compressed && o->max_frames != 0)
        all = ps_mem_sum(all, ps_seek_table_takes(o->max_frames));
    return ps_mem_sum(all, sizeof(ps_output));
}

/*
 * Opens the compressors and a seek table.  The table is empty or, when
 * resuming, contains the frames already written.
 */
static ps_result open_compressors(ps_output *out, ps_error *err)
{
    const ps_output_options *o = &out->options;
    ps_result r;

    if (o->table == NULL) {
        r = ps_seek_table_open(&out->table, err);
    } else if (o->written > UINT64_MAX - o->table_bytes) {
        r = ps_fail(err, PS_ERR_CORRUPT, "the output is too long");
    } else {
        r = ps_seek_table_decode(&out->table, o->table, o->table_bytes,
                                 o->written + o->table_bytes, err);
        if (r == PS_OK && out->table->end.at != o->written)
            r = ps_fail(err, PS_ERR_CORRUPT,
                        "the seek table does not match the output");
    }
    if (r != PS_OK)
        return r;
    if (o->max_frames != 0 && o->max_frames < out->table->max)
        out->table->max = o->max_frames;

    out->n_compressors = o->threads == 0 ? 1 : o->threads;
    out->compressors = calloc(out->n_compressors, sizeof(ps_compressor *));
    if (out->compressors == NULL)
        return ps_fail_memory(err);
    for (uint32_t i = 0; i < out->n_compressors && r == PS_OK; i++)
        r = ps_compressor_open(&out->compressors[i], o->level, err);
    return r;
}

ps_result ps_output_open(ps_output **output, int fd,
                         const ps_output_options *options,
                         ps_error *err)
{
    const ring_shape ring = ring_for(options);
    ps_output *out = calloc(1, sizeof *out);
    ps_result r = PS_OK;

    *output = NULL;
    if (out == NULL)
        return ps_fail_memory(err);
    out->fd = fd;
    out->options = *options;
    out->options.threads = ring.threads;
    out->written = options->written;
    if (options->finalizer != NULL)
        out->finalizer = *options->finalizer;
    (void)pthread_mutex_init(&out->lock, NULL);
    (void)pthread_cond_init(&out->work, NULL);
    (void)pthread_cond_init(&out->progress, NULL);

    out->n_blocks = ring.blocks;
    out->size = ring.size;
    out->blocks = calloc(out->n_blocks, sizeof *out->blocks);
    if (out->blocks == NULL)
        r = ps_fail_memory(err);
    for (uint32_t i = 0; r == PS_OK && i < out->n_blocks; i++) {
        out->blocks[i].bytes = malloc(out->size);
        if (out->blocks[i].bytes == NULL)
            r = ps_fail_memory(err);
    }
    if (r == PS_OK && out->options.compressed)
        r = open_compressors(out, err);
    if (r == PS_OK && ring.threads > 0) {
        out->threads = calloc(ring.threads, sizeof *out->threads);
        if (out->threads == NULL)
            r = ps_fail_memory(err);
    }
    if (r != PS_OK) {
        ps_output_free(out);
        return r;
    }

    /*
     * If fewer threads can be started, output is slower.  If no thread can be
     * started, the caller's thread writes.
     */
    while (out->n_threads < ring.threads &&
           ps_thread_start(&out->threads[out->n_threads], run_thread, out,
                           NULL) == PS_OK)
        out->n_threads++;
    ps_widen_pipe(fd);
    *output = out;
    return PS_OK;
}

void ps_output_free(ps_output *out)
{
    if (out == NULL)
        return;
    (void)pthread_mutex_lock(&out->lock);
    out->stop = true;
    (void)pthread_cond_broadcast(&out->work);
    (void)pthread_mutex_unlock(&out->lock);
    for (uint32_t i = 0; i < out->n_threads; i++)
        (void)pthread_join(out->threads[i], NULL);
    free(out->threads);

    for (uint32_t i = 0; out->blocks != NULL && i < out->n_blocks; i++)
        free(out->blocks[i].bytes);
    for (uint32_t i = 0; out->compressors != NULL && i < out->n_compressors;
         i++)
        ps_compressor_free(out->compressors[i]);
    ps_seek_table_free(out->table);
    free(out->blocks);
    free(out->compressors);
    (void)pthread_cond_destroy(&out->progress);
    (void)pthread_cond_destroy(&out->work);
    (void)pthread_mutex_destroy(&out->lock);
    free(out);
}
