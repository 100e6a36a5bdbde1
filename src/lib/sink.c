/*
 * sink.c - a buffered output in which records are built in place, written
 * and, if asked for, compressed on threads of its own.
 *
 * The bytes lie in a ring of blocks.  The caller fills one after another;
 * threads take them in turn, each to compress its own, and write them in
 * order.  Plain bytes are written by one thread, and of the block that is
 * still being filled as much as was pushed.  A compressed block is a frame,
 * and is written whole.
 *
 * SPDX-License-Identifier: MIT
 */

#include "sink.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "io.h"
#include "frame.h"
#include "seekable.h"
#include "thread.h"

#define FEW 2          /* blocks for which a thread that writes is woken */
#define SPARE_BLOCKS 4 /* beyond those that threads are busy with */

typedef struct block {
    unsigned char *bytes;
    size_t used;
    size_t pushed;  /* bytes that may be written before it is full */
    size_t written; /* bytes that were, */
    size_t sealed;  /* and bytes that are as they are to be */
} block;

struct ps_sink {
    int fd;
    ps_sink_options options;
    ps_sink_seal seal; /* its functions NULL: none */
    size_t size; /* of a block */
    block *blocks;
    uint32_t n_blocks;
    ps_frame_maker **makers; /* one a thread, or one */
    uint32_t n_makers;
    ps_seek_table *table;
    pthread_t *threads;
    uint32_t n_threads;

    /*
     * Numbers of blocks, each from the one before: those up to `filling` are
     * full, up to `taken` in the hands of a thread, up to `done` written.
     * The lock guards them, and all below.
     */
    pthread_mutex_t lock;
    pthread_cond_t work; /* there may be some for a thread */
    pthread_cond_t room; /* a block was written */
    uint64_t filling;
    uint64_t taken;
    uint64_t done;
    uint32_t n_started; /* threads that know their maker */
    bool stop;
    bool failed;
    ps_error err;
};

static block *block_at(const ps_sink *s, uint64_t number)
{
    return &s->blocks[number % s->n_blocks];
}

/* ---- Writing ---- */

/* Only the first failure counts; what comes after it is not written. */
static void note(ps_sink *s, ps_result r, const ps_error *err)
{
    if (r == PS_OK || s->failed)
        return;
    s->failed = true;
    s->err = *err;
}

static ps_result give_failure(const ps_sink *s, ps_error *err)
{
    if (!s->failed)
        return PS_OK;
    if (err != NULL)
        *err = s->err;
    return s->err.code;
}

static void complete(const ps_sink *s, const block *b, size_t end)
{
    if (s->seal.complete != NULL)
        s->seal.complete(s->seal.context, b->bytes + b->sealed,
                         end - b->sealed);
}

static void follow(const ps_sink *s, const block *b, size_t end)
{
    if (s->seal.follow != NULL)
        s->seal.follow(s->seal.context, b->bytes + b->sealed,
                       end - b->sealed);
}

/* Writes a part of a block, without the lock. */
static ps_result write_part(const ps_sink *s, const block *b, size_t end,
                            ps_error *err)
{
    return ps_write_all(s->fd, b->bytes + b->written, end - b->written, err);
}

/* Writes a frame whose turn it is, without the lock. */
static ps_result write_frame(const ps_sink *s, const unsigned char *frame,
                             size_t n, size_t plain, ps_error *err)
{
    ps_result r = ps_write_all(s->fd, frame, n, err);

    return r == PS_OK ? ps_seek_table_add(s->table, n, plain, err) : r;
}

/* ---- What a thread does, with the lock but where it says so ---- */

static void block_done(ps_sink *s)
{
    block *b = block_at(s, s->done);

    b->used = b->pushed = b->written = b->sealed = 0;
    s->done++;
    /* A caller who waits had better find more than one free. */
    if (s->options.compressed || s->filling - s->done <= s->n_blocks / 2)
        (void)pthread_cond_broadcast(&s->room);
}

static bool has_pushed(const ps_sink *s)
{
    const block *b = block_at(s, s->filling);

    return s->taken == s->filling && b->pushed > b->written;
}

/* A full block, or what was pushed of the one that is being filled. */
static void write_plain(ps_sink *s)
{
    block *b = block_at(s, s->taken);
    bool full = s->taken < s->filling;
    size_t end = full ? b->used : b->pushed;
    bool failed = s->failed;
    ps_result r = PS_OK;
    ps_error err;

    s->taken += full;
    (void)pthread_mutex_unlock(&s->lock);
    complete(s, b, end);
    follow(s, b, end);
    if (!failed)
        r = write_part(s, b, end, &err);
    (void)pthread_mutex_lock(&s->lock);
    note(s, r, &err);
    b->written = b->sealed = end;
    if (full)
        block_done(s);
    if (s->taken == s->filling)
        (void)pthread_cond_broadcast(&s->room);
}

static void write_compressed(ps_sink *s, ps_frame_maker *maker)
{
    uint64_t number = s->taken++;
    const block *b = block_at(s, number);
    bool failed = s->failed;
    const unsigned char *frame = NULL;
    size_t n = 0;
    ps_result r = PS_OK;
    ps_error err;

    (void)pthread_mutex_unlock(&s->lock);
    complete(s, b, b->used);
    if (!failed)
        r = ps_frame_make(maker, b->bytes, b->used, &frame, &n, &err);
    (void)pthread_mutex_lock(&s->lock);
    while (s->done != number)
        (void)pthread_cond_wait(&s->room, &s->lock);
    failed = s->failed;
    (void)pthread_mutex_unlock(&s->lock);
    follow(s, b, b->used);
    if (!failed && r == PS_OK)
        r = write_frame(s, frame, n, b->used, &err);
    (void)pthread_mutex_lock(&s->lock);
    note(s, r, &err);
    block_done(s);
}

static void *work(void *context)
{
    ps_sink *s = context;
    ps_frame_maker *maker;

    (void)pthread_mutex_lock(&s->lock);
    maker = s->options.compressed ? s->makers[s->n_started++] : NULL;
    for (;;) {
        if (maker == NULL && (s->taken < s->filling || has_pushed(s)))
            write_plain(s);
        else if (maker != NULL && s->taken < s->filling)
            write_compressed(s, maker);
        else if (s->stop)
            break;
        else
            (void)pthread_cond_wait(&s->work, &s->lock);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- What the caller does ---- */

/* To wake a thread costs as much as to write a block, or nearly so. */
static void wake_thread(ps_sink *s)
{
    if (s->options.compressed || s->filling - s->taken >= FEW)
        (void)pthread_cond_signal(&s->work);
}

/* The block is full, or to be written as it is: without threads, here. */
static ps_result hand_over(ps_sink *s, ps_error *err)
{
    ps_result r;

    (void)pthread_mutex_lock(&s->lock);
    s->filling++;
    if (s->n_threads > 0)
        wake_thread(s);
    else if (s->options.compressed)
        write_compressed(s, s->makers[0]);
    else
        write_plain(s);
    while (s->filling - s->done == s->n_blocks)
        (void)pthread_cond_wait(&s->room, &s->lock);
    r = give_failure(s, err);
    (void)pthread_mutex_unlock(&s->lock);
    return r;
}

static block *current(const ps_sink *s)
{
    return block_at(s, s->filling);
}

ps_result ps_sink_reserve(ps_sink *s, size_t n, unsigned char **room,
                          ps_error *err)
{
    block *b = current(s);

    if (n > s->size - b->used) {
        ps_result r = hand_over(s, err);

        if (r != PS_OK)
            return r;
        b = current(s);
    }
    *room = b->bytes + b->used;
    b->used += n;
    return PS_OK;
}

ps_result ps_sink_put(ps_sink *s, const void *data, size_t n, ps_error *err)
{
    const unsigned char *from = data;

    while (n > 0) {
        block *b = current(s);
        size_t part = n < s->size - b->used ? n : s->size - b->used;

        memcpy(b->bytes + b->used, from, part);
        b->used += part;
        if (s->seal.complete != NULL)
            b->sealed = b->used;
        from += part;
        n -= part;
        if (n > 0) {
            ps_result r = hand_over(s, err);

            if (r != PS_OK)
                return r;
        }
    }
    return PS_OK;
}

ps_result ps_sink_cut(ps_sink *s, ps_error *err)
{
    if (!s->options.compressed || current(s)->used == 0)
        return PS_OK;
    return hand_over(s, err);
}

ps_result ps_sink_push(ps_sink *s, ps_error *err)
{
    ps_result r;

    if (s->n_threads == 0)
        return ps_sink_flush(s, err);
    (void)pthread_mutex_lock(&s->lock);
    current(s)->pushed = current(s)->used;
    if (!s->options.compressed)
        (void)pthread_cond_signal(&s->work);
    r = give_failure(s, err);
    (void)pthread_mutex_unlock(&s->lock);
    return r;
}

/* Waits until all that was handed over or pushed is written. */
static ps_result wait_written(ps_sink *s, ps_error *err)
{
    ps_result r;

    (void)pthread_mutex_lock(&s->lock);
    while (s->done < s->filling ||
           (!s->options.compressed && has_pushed(s)))
        (void)pthread_cond_wait(&s->room, &s->lock);
    r = give_failure(s, err);
    (void)pthread_mutex_unlock(&s->lock);
    return r;
}

ps_result ps_sink_flush(ps_sink *s, ps_error *err)
{
    ps_result r = PS_OK;

    if (s->n_threads > 0)
        r = ps_sink_push(s, err);
    else if (!s->options.compressed && current(s)->used > 0)
        r = hand_over(s, err);
    return r == PS_OK ? wait_written(s, err) : r;
}

ps_result ps_sink_settle(ps_sink *s, ps_error *err)
{
    ps_result r = ps_sink_flush(s, err);
    block *b = current(s);

    if (r == PS_OK && b->sealed < b->used) {
        complete(s, b, b->used);
        follow(s, b, b->used);
        b->sealed = b->used;
    }
    return r;
}

static ps_result put_table(ps_sink *s, ps_error *err)
{
    const unsigned char *bytes;
    size_t n;

    ps_seek_table_encode(s->table, &bytes, &n);
    return ps_write_all(s->fd, bytes, n, err);
}

ps_result ps_sink_finish(ps_sink *s, ps_error *err)
{
    ps_result r = ps_sink_cut(s, err);

    if (r == PS_OK)
        r = ps_sink_flush(s, err);
    if (r == PS_OK && s->options.compressed)
        r = put_table(s, err);
    return r;
}

/* ---- Beginning and end ---- */

static ps_result open_blocks(ps_sink *s, ps_error *err)
{
    const ps_sink_options *o = &s->options;

    s->n_blocks = o->threads == 0 ? 1 : o->threads + SPARE_BLOCKS;
    s->size = PS_IO_BYTES;
    if (o->compressed)
        s->size = o->frame;
    else if (o->largest > s->size)
        s->size = o->largest;
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

static ps_result open_makers(ps_sink *s, ps_error *err)
{
    ps_result r = ps_seek_table_open(&s->table, err);

    if (r != PS_OK)
        return r;
    s->n_makers = s->options.threads == 0 ? 1 : s->options.threads;
    s->makers = calloc(s->n_makers, sizeof(ps_frame_maker *));
    if (s->makers == NULL)
        return ps_fail_memory(err);
    for (uint32_t i = 0; i < s->n_makers && r == PS_OK; i++)
        r = ps_frame_maker_open(&s->makers[i], s->options.level, err);
    return r;
}

static ps_result start_threads(ps_sink *s, ps_error *err)
{
    ps_result r = PS_OK;

    if (s->options.threads == 0)
        return PS_OK;
    s->threads = calloc(s->options.threads, sizeof *s->threads);
    if (s->threads == NULL)
        return ps_fail_memory(err);
    /* With fewer it takes longer, and with none the caller does it. */
    while (r == PS_OK && s->n_threads < s->options.threads) {
        r = ps_thread_start(&s->threads[s->n_threads], work, s, err);
        s->n_threads += r == PS_OK;
    }
    return PS_OK;
}

ps_result ps_sink_open(ps_sink **sink, int fd, const ps_sink_options *options,
                       ps_error *err)
{
    ps_sink *s = calloc(1, sizeof *s);
    ps_result r;

    *sink = NULL;
    if (s == NULL)
        return ps_fail_memory(err);
    s->fd = fd;
    s->options = *options;
    if (options->seal != NULL)
        s->seal = *options->seal;
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->work, NULL);
    (void)pthread_cond_init(&s->room, NULL);
    /* More than one cannot write plain bytes in order. */
    if (!s->options.compressed && s->options.threads > 1)
        s->options.threads = 1;
    r = open_blocks(s, err);
    if (r == PS_OK && s->options.compressed)
        r = open_makers(s, err);
    if (r == PS_OK)
        r = start_threads(s, err);
    if (r != PS_OK) {
        ps_sink_free(s);
        return r;
    }
    ps_widen_pipe(fd);
    *sink = s;
    return PS_OK;
}

static void stop_threads(ps_sink *s)
{
    (void)pthread_mutex_lock(&s->lock);
    s->stop = true;
    (void)pthread_cond_broadcast(&s->work);
    (void)pthread_mutex_unlock(&s->lock);
    for (uint32_t i = 0; i < s->n_threads; i++)
        (void)pthread_join(s->threads[i], NULL);
    free(s->threads);
}

void ps_sink_free(ps_sink *s)
{
    if (s == NULL)
        return;
    stop_threads(s);
    for (uint32_t i = 0; s->blocks != NULL && i < s->n_blocks; i++)
        free(s->blocks[i].bytes);
    for (uint32_t i = 0; s->makers != NULL && i < s->n_makers; i++)
        ps_frame_maker_free(s->makers[i]);
    ps_seek_table_free(s->table);
    free(s->blocks);
    free(s->makers);
    (void)pthread_cond_destroy(&s->room);
    (void)pthread_cond_destroy(&s->work);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}
