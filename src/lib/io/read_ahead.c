/*
 * read_ahead.c - input read in pieces, optionally ahead on a thread.
 *
 * SPDX-License-Identifier: MIT
 *
 * Several reads share a block, so that an input that arrives in small pieces
 * does not use a block for each piece.
 *
 * A user that also waits for other events polls a wakeup pipe.  The thread
 * writes to it when another piece is available.
 */

#include "io/read_ahead.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "base/thread.h"
#include "io/fd.h"

#define MIN_READ ((size_t)64 << 10) /* a block with less space left is full */
#define ALIGNMENT 16                /* bytes; see read_piece */

/*
 * The queue holds the pieces that the user has not taken yet.  Waking a thread
 * costs as much as reading several pieces.  The user is therefore not woken for
 * fewer than FEW pieces while more input is available, and the reading thread
 * sleeps until half of the queue is free.
 */
#define QUEUE 8
#define FEW 2

typedef struct piece {
    ps_span span;
    ps_result result;
    ps_error err;
} piece;

struct ps_read_ahead {
    int fd; /* not owned */
    ps_pool *pool;
    ps_block *block; /* being filled */
    size_t used;     /* bytes of `block` in use */
    uint64_t offset; /* offset of the next read in the input, bytes */
    piece queue[QUEUE];
    bool threaded;
    pthread_t thread;
    int wakeup[2]; /* pipe that wakes the user */
    int quit[2];   /* pipe that stops the thread */

    /* `lock` guards the members below. */
    pthread_mutex_t lock;
    pthread_cond_t not_empty; /* wakes the user */
    pthread_cond_t not_full;  /* wakes the thread */
    uint64_t filled;          /* pieces put into the queue */
    uint64_t taken;           /* pieces taken by the user */
    bool polled;              /* the user may poll `wakeup` for this piece */
    bool wake_user;           /* `wakeup` has to be written for this poll */
    bool full;                /* the thread waits for space in the queue */
    bool stop;
};

/*
 * The pool contains a block that the user holds, a block that is being filled,
 * and the blocks in the queue.
 */
uint64_t ps_read_ahead_bytes(bool threaded)
{
    return ps_mem_sum(ps_pool_bytes(threaded ? QUEUE + 2 : 2),
                      sizeof(ps_read_ahead) +
                          (threaded ? PS_THREAD_BYTES : 0));
}

/*
 * Reads a piece.  Runs on the reading thread or on the user's thread.
 *
 * Each byte has the same offset modulo ALIGNMENT in memory as in the input,
 * even if pieces have odd sizes.  Fields of packs are therefore aligned.
 */
static ps_result read_piece(ps_read_ahead *a, ps_span *span, ps_error *err)
{
    unsigned char *to;
    ssize_t n;

    *span = (ps_span){.n = 0};
    if (a->block == NULL || PS_BLOCK_BYTES - a->used < MIN_READ) {
        ps_result r;

        a->used = (size_t)(a->offset % ALIGNMENT);
        r = ps_pool_take(a->pool, &a->block, err);
        if (r != PS_OK)
            return r;
    }
    to = a->block->bytes + a->used;
    n = ps_read(a->fd, to, PS_BLOCK_BYTES - a->used);
    if (n < 0)
        return ps_fail_errno(err, "cannot read");
    *span = (ps_span){a->block, to, (size_t)n};
    a->used += (size_t)n;
    a->offset += (uint64_t)n;
    return PS_OK;
}

ps_result ps_read_ahead_into(ps_read_ahead *a, unsigned char *to, size_t size,
                             size_t *n, ps_error *err)
{
    const ssize_t got = ps_read(a->fd, to, size);

    *n = 0;
    if (got < 0)
        return ps_fail_errno(err, "cannot read");
    *n = (size_t)got;
    a->offset += *n;
    a->block = NULL; /* the next read needs another alignment */
    return PS_OK;
}

/* Seeks in a regular file, but not beyond its end. */
uint64_t ps_read_ahead_skip(ps_read_ahead *a, uint64_t n)
{
    struct stat st;
    off_t at;

    if (a->threaded || fstat(a->fd, &st) != 0 || !S_ISREG(st.st_mode))
        return 0;
    at = lseek(a->fd, 0, SEEK_CUR);
    if (at < 0 || at >= st.st_size)
        return 0;
    if (n > (uint64_t)(st.st_size - at))
        n = (uint64_t)(st.st_size - at);
    if (lseek(a->fd, (off_t)n, SEEK_CUR) < 0)
        return 0;
    a->offset += n;
    a->block = NULL; /* the next read needs another alignment */
    return n;
}

/* Thread function: fills the queue until the end of the input or stop. */
static void *run(void *context)
{
    ps_read_ahead *a = context;

    for (;;) {
        piece *p;
        bool last;
        bool now;

        (void)pthread_mutex_lock(&a->lock);
        a->full = a->filled == a->taken + QUEUE;
        while (!a->stop && a->full)
            (void)pthread_cond_wait(&a->not_full, &a->lock);
        p = a->stop ? NULL : &a->queue[a->filled % QUEUE];
        (void)pthread_mutex_unlock(&a->lock);
        if (p == NULL || !ps_wait_input(a->fd, a->quit[0]))
            return NULL;

        p->result = read_piece(a, &p->span, &p->err);
        last = p->span.n == 0;
        now = last || ps_would_wait(a->fd);

        (void)pthread_mutex_lock(&a->lock);
        a->filled++;
        now = now || a->filled >= a->taken + FEW;
        if (now && a->wake_user) {
            /*
             * Wake the user while the lock is held.  Otherwise the byte could
             * arrive after the wait has ended, and end the next wait early.
             */
            a->wake_user = false;
            ps_wake(a->wakeup);
        }
        (void)pthread_mutex_unlock(&a->lock);
        if (now)
            (void)pthread_cond_signal(&a->not_empty);
        if (last)
            return NULL;
    }
}

ps_result ps_read_ahead_next(ps_read_ahead *a, ps_span *span, ps_error *err)
{
    const piece *p;
    bool wake_thread;
    bool woken;
    char c;

    if (!a->threaded)
        return read_piece(a, span, err);
    (void)pthread_mutex_lock(&a->lock);
    woken = a->polled && !a->wake_user;
    a->wake_user = a->polled = false;
    while (a->taken == a->filled)
        (void)pthread_cond_wait(&a->not_empty, &a->lock);
    (void)pthread_mutex_unlock(&a->lock);

    /* Drain the pipe, so that the next poll does not return at once. */
    while (woken && read(a->wakeup[0], &c, 1) < 0 && errno == EINTR)
        continue;

    p = &a->queue[a->taken % QUEUE];
    *span = p->span;
    if (p->result != PS_OK && err != NULL)
        *err = p->err;
    /* The last piece, which is the end or a failure, stays in the queue. */
    if (span->n == 0)
        return p->result;

    (void)pthread_mutex_lock(&a->lock);
    a->taken++;
    wake_thread = a->full && a->filled <= a->taken + QUEUE / 2;
    if (wake_thread)
        a->full = false;
    (void)pthread_mutex_unlock(&a->lock);
    if (wake_thread)
        (void)pthread_cond_signal(&a->not_full);
    return PS_OK;
}

bool ps_read_ahead_would_wait(ps_read_ahead *a)
{
    bool empty;

    if (!a->threaded)
        return ps_would_wait(a->fd);
    (void)pthread_mutex_lock(&a->lock);
    empty = a->taken == a->filled;
    if (empty)
        a->wake_user = a->polled = true;
    (void)pthread_mutex_unlock(&a->lock);
    return empty;
}

int ps_read_ahead_descriptor(const ps_read_ahead *a)
{
    return a->threaded ? a->wakeup[0] : a->fd;
}

ps_result ps_read_ahead_open(ps_read_ahead **read_ahead, int fd, ps_pool *pool,
                             ps_error *err)
{
    ps_read_ahead *a = calloc(1, sizeof *a);

    *read_ahead = a;
    if (a == NULL)
        return ps_fail_memory(err);
    a->fd = fd;
    a->pool = pool;
    a->wakeup[0] = a->wakeup[1] = a->quit[0] = a->quit[1] = -1;
    (void)pthread_mutex_init(&a->lock, NULL);
    (void)pthread_cond_init(&a->not_empty, NULL);
    (void)pthread_cond_init(&a->not_full, NULL);
    ps_widen_pipe(fd);
    return PS_OK;
}

/* If no thread can be started, the user's thread keeps reading. */
ps_result ps_read_ahead_start(ps_read_ahead *a, ps_error *err)
{
    ps_result r = PS_OK;

    if (a->threaded)
        return PS_OK;
    if (a->wakeup[0] < 0)
        r = ps_wakeup_pipe_open(a->wakeup, err);
    if (r == PS_OK && a->quit[0] < 0)
        r = ps_wakeup_pipe_open(a->quit, err);
    if (r == PS_OK)
        a->threaded = ps_thread_start(&a->thread, run, a, err) == PS_OK;
    return r;
}

void ps_read_ahead_free(ps_read_ahead *a)
{
    if (a == NULL)
        return;
    if (a->threaded) {
        (void)pthread_mutex_lock(&a->lock);
        a->stop = true;
        (void)pthread_cond_signal(&a->not_full);
        (void)pthread_mutex_unlock(&a->lock);
        ps_wake(a->quit);
        (void)pthread_join(a->thread, NULL);
    }
    for (int i = 0; i < 2; i++) {
        if (a->wakeup[i] >= 0)
            (void)close(a->wakeup[i]);
        if (a->quit[i] >= 0)
            (void)close(a->quit[i]);
    }
    (void)pthread_cond_destroy(&a->not_full);
    (void)pthread_cond_destroy(&a->not_empty);
    (void)pthread_mutex_destroy(&a->lock);
    free(a);
}
