/*
 * output.c - a buffered output in which records are built in place, written
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

#include <string.h>

#include "io/fd.h"
#include "io/output_internal.h"

#define FEW 2 /* blocks for which a thread that writes is woken */

typedef ps_output_block block;

static block *block_at(const ps_output *s, uint64_t number)
{
    return &s->blocks[number % s->n_blocks];
}

/* ---- Writing ---- */

/* Only the first failure counts; what comes after it is not written. */
static void note(ps_output *s, ps_result r, const ps_error *err)
{
    if (r == PS_OK || s->failed)
        return;
    s->failed = true;
    s->err = *err;
}

static ps_result give_failure(const ps_output *s, ps_error *err)
{
    if (!s->failed)
        return PS_OK;
    if (err != NULL)
        *err = s->err;
    return s->err.code;
}

static void complete(const ps_output *s, const block *b, size_t end)
{
    if (s->seal.complete != NULL)
        s->seal.complete(s->seal.context, b->bytes + b->sealed,
                         end - b->sealed);
}

static void follow(const ps_output *s, const block *b, size_t end)
{
    if (s->seal.follow != NULL)
        s->seal.follow(s->seal.context, b->bytes + b->sealed,
                       end - b->sealed);
}

static ps_result write_counted(ps_output *s, const unsigned char *bytes,
                               size_t n, ps_error *err)
{
    ps_result r = ps_write_all(s->fd, bytes, n, err);

    s->written += r == PS_OK ? n : 0;
    return r;
}

/* Writes a part of a block, without the lock. */
static ps_result write_part(ps_output *s, const block *b, size_t end,
                            ps_error *err)
{
    size_t n = end - b->written;
    size_t skip = s->discard < n ? (size_t)s->discard : n;

    s->discard -= skip;
    return write_counted(s, b->bytes + b->written + skip, n - skip, err);
}

/* Writes a frame whose turn it is, without the lock. */
static ps_result write_frame(ps_output *s, const unsigned char *frame,
                             size_t n, size_t plain, ps_error *err)
{
    ps_result r = write_counted(s, frame, n, err);

    return r == PS_OK ? ps_seek_table_add(s->table, n, plain, err) : r;
}

/* ---- What a thread does, with the lock but where it says so ---- */

static void block_done(ps_output *s)
{
    block *b = block_at(s, s->done);

    b->used = b->pushed = b->written = b->sealed = 0;
    s->done++;
    /* A caller who waits had better find more than one free. */
    if (s->options.compressed || s->filling - s->done <= s->n_blocks / 2)
        (void)pthread_cond_broadcast(&s->room);
}

static bool has_pushed(const ps_output *s)
{
    const block *b = block_at(s, s->filling);

    return s->taken == s->filling && b->pushed > b->written;
}

/* A full block, or what was pushed of the one that is being filled. */
static void write_plain(ps_output *s)
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

static void write_compressed(ps_output *s, ps_compressor *maker)
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
        r = ps_compress_frame(maker, b->bytes, b->used, &frame, &n, &err);
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

void *ps_output_work(void *context)
{
    ps_output *s = context;
    ps_compressor *maker;

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
static void wake_thread(ps_output *s)
{
    if (s->options.compressed || s->filling - s->taken >= FEW)
        (void)pthread_cond_signal(&s->work);
}

/* The block is full, or to be written as it is: without threads, here. */
static ps_result hand_over(ps_output *s, ps_error *err)
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

static block *current(const ps_output *s)
{
    return block_at(s, s->filling);
}

ps_result ps_output_reserve(ps_output *s, size_t n, unsigned char **room,
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

ps_result ps_output_put(ps_output *s, const void *data, size_t n, ps_error *err)
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

ps_result ps_output_cut(ps_output *s, ps_error *err)
{
    if (!s->options.compressed || current(s)->used == 0)
        return PS_OK;
    return hand_over(s, err);
}

ps_result ps_output_push(ps_output *s, ps_error *err)
{
    ps_result r;

    if (s->n_threads == 0)
        return ps_output_flush(s, err);
    (void)pthread_mutex_lock(&s->lock);
    current(s)->pushed = current(s)->used;
    if (!s->options.compressed)
        (void)pthread_cond_signal(&s->work);
    r = give_failure(s, err);
    (void)pthread_mutex_unlock(&s->lock);
    return r;
}

/* Waits until all that was handed over or pushed is written. */
static ps_result wait_written(ps_output *s, ps_error *err)
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

ps_result ps_output_flush(ps_output *s, ps_error *err)
{
    ps_result r = PS_OK;

    if (s->n_threads > 0)
        r = ps_output_push(s, err);
    else if (!s->options.compressed && current(s)->used > 0)
        r = hand_over(s, err);
    return r == PS_OK ? wait_written(s, err) : r;
}

ps_result ps_output_settle(ps_output *s, ps_error *err)
{
    ps_result r = ps_output_flush(s, err);
    block *b = current(s);

    if (r == PS_OK && b->sealed < b->used) {
        complete(s, b, b->used);
        follow(s, b, b->used);
        b->sealed = b->used;
    }
    return r;
}

ps_result ps_output_where(ps_output *s, ps_output_place *place, ps_error *err)
{
    ps_result r = ps_output_settle(s, err);

    *place = (ps_output_place){.written = s->written};
    if (r != PS_OK || !s->options.compressed)
        return r;
    place->pending = current(s)->bytes;
    place->pending_bytes = current(s)->used;
    if (ps_seek_table_frames(s->table) > 0)
        ps_seek_table_encode(s->table, &place->table, &place->table_bytes);
    return PS_OK;
}

uint64_t ps_output_written(const ps_output *s)
{
    return s->written;
}

void ps_output_discard(ps_output *s, uint64_t n)
{
    s->discard = n;
}

static ps_result put_table(ps_output *s, ps_error *err)
{
    const unsigned char *bytes;
    size_t n;

    ps_seek_table_encode(s->table, &bytes, &n);
    return write_counted(s, bytes, n, err);
}

ps_result ps_output_finish(ps_output *s, ps_error *err)
{
    ps_result r = ps_output_cut(s, err);

    if (r == PS_OK)
        r = ps_output_flush(s, err);
    if (r == PS_OK && s->options.compressed)
        r = put_table(s, err);
    return r;
}
