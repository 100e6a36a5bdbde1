/*
 * ahead.c - an input read block by block, ahead of its use on a thread of
 * its own if asked for.
 *
 * The blocks are a ring.  The thread fills one after another; the user holds
 * the last two that it took, so that what is left of one can be joined to
 * the next.
 *
 * A user who would rather wait for other things as well listens to a bell:
 * a pipe, into which the thread writes when there is something again.
 *
 * SPDX-License-Identifier: MIT
 */

#include "ahead.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "error.h"
#include "io.h"
#include "thread.h"

#define HELD 2 /* by the user */
#define BLOCKS 6

typedef struct block {
    unsigned char *memory; /* headroom, then PS_IO_BYTES */
    size_t n;              /* bytes read; 0 at the end of the input */
    ps_result result;
    ps_error err;
} block;

struct ps_ahead {
    int fd;
    block blocks[BLOCKS];
    uint32_t n_blocks; /* of them in use */
    uint64_t taken;    /* blocks that the user was given */
    bool threaded;
    pthread_t thread;
    int bell[2];

    /* The lock guards these, and `taken`. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t filled;
    bool listened;  /* the user did, since it took the last block, */
    bool listening; /* and the bell has not been rung */
    bool stop;
};

static block *block_at(ps_ahead *a, uint64_t number)
{
    return &a->blocks[number % a->n_blocks];
}

static void fill(const ps_ahead *a, block *b)
{
    ssize_t n = ps_read(a->fd, b->memory + PS_AHEAD_HEADROOM, PS_IO_BYTES);

    b->n = n > 0 ? (size_t)n : 0;
    b->result = n < 0 ? ps_fail_errno(&b->err, "cannot read") : PS_OK;
}

/* ---- The thread ---- */

static void ring(ps_ahead *a)
{
    if (!a->listening)
        return;
    a->listening = false;
    while (write(a->bell[1], "", 1) < 0 && errno == EINTR)
        continue;
}

/* The next block that the user does not hold, or NULL to stop. */
static block *wait_room(ps_ahead *a)
{
    block *b;

    (void)pthread_mutex_lock(&a->lock);
    while (!a->stop && a->filled + HELD >= a->taken + a->n_blocks)
        (void)pthread_cond_wait(&a->changed, &a->lock);
    b = a->stop ? NULL : block_at(a, a->filled);
    (void)pthread_mutex_unlock(&a->lock);
    return b;
}

static void hand_out(ps_ahead *a)
{
    (void)pthread_mutex_lock(&a->lock);
    a->filled++;
    (void)pthread_cond_broadcast(&a->changed);
    ring(a);
    (void)pthread_mutex_unlock(&a->lock);
}

/*
 * It may be cancelled only where it can wait without an end, and holds
 * nothing there.
 */
static void fill_cancellable(const ps_ahead *a, block *b)
{
    int before;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
    fill(a, b);
    (void)pthread_setcancelstate(before, NULL);
}

static void *run(void *context)
{
    ps_ahead *a = context;
    bool more = true;

    while (more) {
        block *b = wait_room(a);

        if (b == NULL)
            break;
        fill_cancellable(a, b);
        more = b->n > 0;
        hand_out(a);
    }
    return NULL;
}

/* A new thread may be cancelled anywhere: not before it can say where. */
static void *start(void *context)
{
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    return run(context);
}

/* ---- The user ---- */

/* Hears the bell out. */
static void stop_listening(ps_ahead *a)
{
    char c;

    while (read(a->bell[0], &c, 1) < 0 && errno == EINTR)
        continue;
}

/* The next block, as soon as the thread has filled it. */
static const block *wait_block(ps_ahead *a)
{
    bool rung;

    (void)pthread_mutex_lock(&a->lock);
    rung = a->listened && !a->listening;
    a->listening = a->listened = false;
    while (a->taken == a->filled)
        (void)pthread_cond_wait(&a->changed, &a->lock);
    a->taken++;
    (void)pthread_cond_broadcast(&a->changed);
    (void)pthread_mutex_unlock(&a->lock);
    if (rung)
        stop_listening(a);
    return block_at(a, a->taken - 1);
}

ps_result ps_ahead_next(ps_ahead *a, unsigned char **bytes, size_t *n,
                        ps_error *err)
{
    const block *b;

    if (a->threaded) {
        b = wait_block(a);
    } else {
        fill(a, block_at(a, a->taken));
        b = block_at(a, a->taken++);
    }
    *bytes = b->memory + PS_AHEAD_HEADROOM;
    *n = b->n;
    if (b->result != PS_OK && err != NULL)
        *err = b->err;
    return b->result;
}

bool ps_ahead_would_wait(ps_ahead *a)
{
    bool empty;

    if (!a->threaded)
        return ps_would_wait(a->fd);
    (void)pthread_mutex_lock(&a->lock);
    empty = a->taken == a->filled;
    if (empty)
        a->listening = a->listened = true;
    (void)pthread_mutex_unlock(&a->lock);
    return empty;
}

int ps_ahead_descriptor(const ps_ahead *a)
{
    return a->threaded ? a->bell[0] : a->fd;
}

/* ---- Beginning and end ---- */

static ps_result open_blocks(ps_ahead *a, uint32_t n, ps_error *err)
{
    for (; a->n_blocks < n; a->n_blocks++) {
        block *b = &a->blocks[a->n_blocks];

        b->memory = malloc(PS_AHEAD_HEADROOM + PS_IO_BYTES);
        if (b->memory == NULL)
            return ps_fail_memory(err);
    }
    return PS_OK;
}

ps_result ps_ahead_open(ps_ahead **ahead, int fd, ps_error *err)
{
    ps_ahead *a = calloc(1, sizeof *a);
    ps_result r;

    *ahead = NULL;
    if (a == NULL)
        return ps_fail_memory(err);
    a->fd = fd;
    a->bell[0] = a->bell[1] = -1;
    (void)pthread_mutex_init(&a->lock, NULL);
    (void)pthread_cond_init(&a->changed, NULL);
    r = open_blocks(a, HELD, err);
    if (r != PS_OK) {
        ps_ahead_free(a);
        return r;
    }
    ps_widen_pipe(fd);
    *ahead = a;
    return PS_OK;
}

/* In a larger ring, too, the two that the user holds are to be the last. */
static void renumber(ps_ahead *a)
{
    if (a->taken % HELD != 0) {
        block first = a->blocks[0];

        a->blocks[0] = a->blocks[1];
        a->blocks[1] = first;
    }
    a->taken = a->filled = HELD;
}

ps_result ps_ahead_start(ps_ahead *a, ps_error *err)
{
    ps_result r;

    if (a->threaded)
        return PS_OK;
    renumber(a);
    r = open_blocks(a, BLOCKS, err);
    if (r == PS_OK)
        r = ps_open_bell(a->bell, err);
    if (r == PS_OK)
        r = ps_thread_start(&a->thread, start, a, err);
    a->threaded = r == PS_OK;
    return r;
}

static void stop(ps_ahead *a)
{
    (void)pthread_mutex_lock(&a->lock);
    a->stop = true;
    (void)pthread_cond_broadcast(&a->changed);
    (void)pthread_mutex_unlock(&a->lock);
    (void)pthread_cancel(a->thread);
    (void)pthread_join(a->thread, NULL);
}

void ps_ahead_free(ps_ahead *a)
{
    if (a == NULL)
        return;
    if (a->threaded)
        stop(a);
    for (int i = 0; i < 2; i++)
        if (a->bell[i] >= 0)
            (void)close(a->bell[i]);
    for (uint32_t i = 0; i < a->n_blocks; i++)
        free(a->blocks[i].memory);
    (void)pthread_cond_destroy(&a->changed);
    (void)pthread_mutex_destroy(&a->lock);
    free(a);
}
