/*
 * read_ahead.c - an input read piece by piece, ahead of its use on a thread of
 * its own if asked for.
 *
 * A block is filled by as many reads as it takes, so that an input which
 * comes in drops does not take a block for each.
 *
 * A user who would rather wait for other things as well listens to a bell:
 * a pipe, into which the thread writes when there is something again.
 *
 * SPDX-License-Identifier: MIT
 */

#include "io/read_ahead.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/thread.h"
#include "io/fd.h"

#define MIN_ROOM ((size_t)64 << 10) /* to read into what is left */
#define ALIGNMENT 16

/*
 * Pieces that wait for the user.  To wake a thread costs as much as to read
 * some of them, so none is woken for one: the user not while more can be read
 * at once, and who reads not before half of the queue is free.
 */
#define QUEUE 8
#define FEW 2

typedef struct piece {
    ps_span span;
    ps_result result;
    ps_error err;
} piece;

struct ps_read_ahead {
    int fd;
    ps_pool *pool;
    ps_block *block; /* into which is read... */
    size_t used;     /* ...behind so many bytes */
    uint64_t offset; /* in the input of what is read next */
    piece queue[QUEUE];
    bool threaded;
    pthread_t thread;
    int wakeup[2]; /* for the user, */
    int quit[2]; /* and one for the thread, when it is to end */

    /* The lock guards these. */
    pthread_mutex_t lock;
    pthread_cond_t news; /* for the user */
    pthread_cond_t room; /* for the thread */
    uint64_t filled; /* pieces, */
    uint64_t taken;  /* and those that the user took */
    bool listened;   /* the user did, since it took the last one, */
    bool listening;  /* and the bell has not been rung */
    bool full;       /* the thread waits for room */
    bool stop;
};

/* One that the user has, one that is read into, and those between them. */
uint32_t ps_read_ahead_blocks(bool threaded)
{
    return threaded ? QUEUE + 2 : 2;
}

uint64_t ps_read_ahead_bytes(bool threaded)
{
    return sizeof(ps_read_ahead) + (threaded ? PS_THREAD_BYTES : 0);
}

/* ---- Reading, on whatever thread ---- */

/*
 * Every byte of the input lies as far behind a multiple of ALIGNMENT in memory
 * as in the input, also where pieces have odd sizes: so do fields of packs.
 */
static ps_result find_room(ps_read_ahead *a, ps_error *err)
{
    if (a->block != NULL && PS_BLOCK_BYTES - a->used >= MIN_ROOM)
        return PS_OK;
    a->used = (size_t)(a->offset % ALIGNMENT);
    return ps_pool_take(a->pool, &a->block, err);
}

static ps_result read_span(ps_read_ahead *a, ps_span *span, ps_error *err)
{
    unsigned char *to = a->block->bytes + a->used;
    ssize_t n = ps_read(a->fd, to, PS_BLOCK_BYTES - a->used);

    if (n < 0)
        return ps_fail_errno(err, "cannot read");
    *span = (ps_span){a->block, to, (size_t)n};
    a->used += (size_t)n;
    a->offset += (uint64_t)n;
    return PS_OK;
}

static void fill(ps_read_ahead *a, piece *p)
{
    p->span = (ps_span){.n = 0};
    p->result = find_room(a, &p->err);
    if (p->result == PS_OK)
        p->result = read_span(a, &p->span, &p->err);
}

/* Where the end is known, nothing is passed over that is not there. */
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
    a->block = NULL; /* what is read next belongs elsewhere in one */
    return n;
}

/* ---- The thread ---- */

/* A place for the next piece, or NULL to stop. */
static piece *wait_room(ps_read_ahead *a)
{
    piece *p;

    (void)pthread_mutex_lock(&a->lock);
    a->full = a->filled == a->taken + QUEUE;
    while (!a->stop && a->full)
        (void)pthread_cond_wait(&a->room, &a->lock);
    p = a->stop ? NULL : &a->queue[a->filled % QUEUE];
    (void)pthread_mutex_unlock(&a->lock);
    return p;
}

static void ring(const int wakeup[2])
{
    while (write(wakeup[1], "", 1) < 0 && errno == EINTR)
        continue;
}

static void hand_out(ps_read_ahead *a, bool last)
{
    bool may_wait = last || ps_would_wait(a->fd);
    bool wake;

    (void)pthread_mutex_lock(&a->lock);
    a->filled++;
    wake = may_wait || a->filled >= a->taken + FEW;
    if (wake && a->listening) {
        /* With the lock, or the user might hear it only at the next wait. */
        a->listening = false;
        ring(a->wakeup);
    }
    (void)pthread_mutex_unlock(&a->lock);
    if (wake)
        (void)pthread_cond_signal(&a->news);
}

/*
 * Waits until there is something to read, or the user has no more use for
 * it: then gives false.  What makes a wait fail shows when it is read.
 */
static bool wait_input(const ps_read_ahead *a)
{
    struct pollfd p[2] = {{.fd = a->fd, .events = POLLIN},
                          {.fd = a->quit[0], .events = POLLIN}};
    int n;

    do {
        n = poll(p, 2, -1);
    } while (n < 0 && (errno == EINTR || errno == EAGAIN));
    return n < 0 || p[1].revents == 0;
}

static void *run(void *context)
{
    ps_read_ahead *a = context;
    bool more = true;

    while (more) {
        piece *p = wait_room(a);

        if (p == NULL || !wait_input(a))
            break;
        fill(a, p);
        more = p->span.n > 0;
        hand_out(a, !more);
    }
    return NULL;
}

/* ---- The user ---- */

/* Hears the bell out. */
static void stop_listening(ps_read_ahead *a)
{
    char c;

    while (read(a->wakeup[0], &c, 1) < 0 && errno == EINTR)
        continue;
}

/* The next piece, as soon as the thread has it; it stays in the queue. */
static const piece *wait_piece(ps_read_ahead *a)
{
    bool rung;

    (void)pthread_mutex_lock(&a->lock);
    rung = a->listened && !a->listening;
    a->listening = a->listened = false;
    while (a->taken == a->filled)
        (void)pthread_cond_wait(&a->news, &a->lock);
    (void)pthread_mutex_unlock(&a->lock);
    if (rung)
        stop_listening(a);
    return &a->queue[a->taken % QUEUE];
}

static void take_piece(ps_read_ahead *a)
{
    bool wake;

    (void)pthread_mutex_lock(&a->lock);
    a->taken++;
    wake = a->full && a->filled <= a->taken + QUEUE / 2;
    if (wake)
        a->full = false;
    (void)pthread_mutex_unlock(&a->lock);
    if (wake)
        (void)pthread_cond_signal(&a->room);
}

ps_result ps_read_ahead_next(ps_read_ahead *a, ps_span *span, ps_error *err)
{
    const piece *p = &a->queue[0];
    ps_result r;

    if (a->threaded)
        p = wait_piece(a);
    else
        fill(a, &a->queue[0]);
    *span = p->span;
    r = p->result;
    if (r != PS_OK && err != NULL)
        *err = p->err;
    /* The last one, the end or a failure, is there for ever. */
    if (a->threaded && span->n > 0)
        take_piece(a);
    return r;
}

bool ps_read_ahead_would_wait(ps_read_ahead *a)
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

int ps_read_ahead_descriptor(const ps_read_ahead *a)
{
    return a->threaded ? a->wakeup[0] : a->fd;
}

/* ---- Beginning and end ---- */

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
    (void)pthread_cond_init(&a->news, NULL);
    (void)pthread_cond_init(&a->room, NULL);
    ps_widen_pipe(fd);
    return PS_OK;
}

/* Without a thread the user reads. */
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

static void stop(ps_read_ahead *a)
{
    (void)pthread_mutex_lock(&a->lock);
    a->stop = true;
    (void)pthread_cond_signal(&a->room);
    (void)pthread_mutex_unlock(&a->lock);
    ring(a->quit);
    (void)pthread_join(a->thread, NULL);
}

void ps_read_ahead_free(ps_read_ahead *a)
{
    if (a == NULL)
        return;
    if (a->threaded)
        stop(a);
    for (int i = 0; i < 2; i++) {
        if (a->wakeup[i] >= 0)
            (void)close(a->wakeup[i]);
        if (a->quit[i] >= 0)
            (void)close(a->quit[i]);
    }
    (void)pthread_cond_destroy(&a->room);
    (void)pthread_cond_destroy(&a->news);
    (void)pthread_mutex_destroy(&a->lock);
    free(a);
}
