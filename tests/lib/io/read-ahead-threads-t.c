/*
 * read-ahead-threads-t.c - every interleaving of the thread that reads ahead
 * and its user: each piece arrives once and in order, a user can stop at any
 * time, and no wakeup is lost, of a condition or of a pipe.
 *
 * io/read_ahead.c is compiled here with the scheduler of interleave.h instead
 * of its threads, and with pipes that are counters.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tap.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "io/fd.h"
#include "io/read_ahead.h"

#include "interleave.h"

/* ---- The scenario of a run ---- */

static struct {
    uint32_t pieces; /* after which the input ends */
    uint32_t come;   /* after which it blocks for ever */
    bool polls;      /* the user checks for input before it reads */
    uint32_t stops;  /* pieces after which the user stops */
    bool fails;      /* the last read */
} plan;

typedef struct job_state {
    uint32_t read;
    int n_pipes;
    int wakeup; /* bytes in them */
    int quit;
    ps_block block;
} job_state;

static job_state *job;

/* ---- Replacements for the functions that read_ahead.c calls ---- */

#define WAKEUP 10
#define QUIT 20

static ps_result fake_pipe(int ends[2], ps_error *err)
{
    ends[0] = job->n_pipes++ == 0 ? WAKEUP : QUIT;
    ends[1] = ends[0] + 1;
    return PS_OK;
}

static int *pipe_of(int fd)
{
    return fd == WAKEUP ? &job->wakeup : &job->quit;
}

static bool has_bytes(const void *pipe)
{
    return *(const int *)pipe > 0;
}

static void fake_wake(const int ends[2], const char *place)
{
    if (interleave_wakes(place))
        ++*pipe_of(ends[0]);
}

static ssize_t fake_read(int fd, void *bytes, size_t n)
{
    interleave_until(has_bytes, pipe_of(fd), "reads a pipe");
    --*pipe_of(fd);
    return 1;
}

static bool has_input(const void *context)
{
    const job_state *r = context;

    return r->quit > 0 || r->read < plan.come;
}

static bool fake_wait_input(int fd, int quit)
{
    interleave_until(has_input, job, "waits for input");
    return job->quit == 0;
}

static bool fake_would_wait(int fd)
{
    return job->read >= plan.come || interleave_choose(2) == 1;
}

/* The size of a piece in bytes is its number, from 1. */
static ssize_t fake_input(int fd, void *bytes, size_t n)
{
    interleave_step("reads");
    interleave_check(job->read < plan.come, "a read waits for ever");
    job->read++;
    if (job->read <= plan.pieces)
        return (ssize_t)job->read;
    errno = EIO;
    return plan.fails ? -1 : 0;
}

/* A block into which nothing is read. */
static ps_result fake_take(ps_pool *pool, ps_block **block, ps_error *err)
{
    static unsigned char bytes[PS_BLOCK_BYTES];

    job->block.bytes = bytes;
    *block = &job->block;
    return PS_OK;
}

#define ps_wakeup_pipe_open fake_pipe
#define ps_wake(ends) fake_wake((ends), INTERLEAVE_PLACE)
#define ps_wait_input fake_wait_input
#define ps_would_wait fake_would_wait
#define ps_read fake_input
#define ps_pool_take fake_take
#define ps_widen_pipe(fd) ((void)(fd))
#define read fake_read
#define close(fd) ((void)(fd))

#include "io/read_ahead.c"

#undef read
#undef close

/* ---- The user ---- */

static void use(ps_read_ahead *a)
{
    for (uint32_t i = 1; i <= plan.stops; i++) {
        const bool is_last = i == plan.pieces + 1;
        ps_span span;
        ps_result r;

        if (plan.polls && ps_read_ahead_would_wait(a))
            interleave_until(has_bytes, &job->wakeup, "polls");
        r = ps_read_ahead_next(a, &span, NULL);
        interleave_check(span.n == (is_last ? 0 : i),
                         "a piece is not what comes next");
        interleave_check(r == (is_last && plan.fails ? PS_ERR_IO : PS_OK),
                         "a failure is not told");
        if (is_last)
            break;
    }
}

static void run_read_ahead(void)
{
    ps_read_ahead *a;
    ps_error err;

    job = interleave_alloc(sizeof *job);
    interleave_check(ps_read_ahead_open(&a, 3, NULL, &err) == PS_OK &&
                         ps_read_ahead_start(a, &err) == PS_OK && a->threaded,
                     "reading ahead cannot begin");
    use(a);
    ps_read_ahead_free(a);
}

/* Enough pieces to fill the queue and wrap it. */
#define PIECES (QUEUE + 3)
#define NEVER UINT32_MAX

static const struct {
    uint32_t come;
    uint32_t stops;
    bool fails;
} scenarios[] = {
    {NEVER, NEVER, false}, {NEVER, NEVER, true}, {NEVER, 0, false},
    {NEVER, 1, false},     {NEVER, 5, false},    {NEVER, PIECES, false},
    {1, 1, false},         {2, 1, false},        {5, 5, false},
    {0, 0, false},         {PIECES, PIECES, false},
};

static bool set_plan(size_t i, bool spurious)
{
    plan.polls = i % 2 != 0;
    i /= 2;
    plan.pieces = PIECES;
    plan.come = scenarios[i].come;
    plan.stops = scenarios[i].stops;
    plan.fails = scenarios[i].fails;
    return true;
}

int main(void)
{
    interleave_suite suite = {2 * COUNT(scenarios), set_plan,
                              run_read_ahead};

    return interleave_main("read-ahead-threads", &suite);
}
