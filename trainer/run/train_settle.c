/*
 * train_settle.c - wait for queued steps, record and print them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run/train_parts.h"

#include <inttypes.h>
#include <poll.h>
#include <unistd.h>

#include "run/rank_message.h"
#include "run/shutdown.h"

#define PATIENCE 1 /* time to wait for the reader after a signal, in seconds */
#define LOOK 50    /* interval of looks for a signal, in milliseconds */

double train_clock(clockid_t clock)
{
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Records the steps that succeeded.  The last step gets the sums. */
static void record_steps(training *t, const tr_results *r)
{
    report_step *last = &t->queue[r->steps - 1].report;

    last->gradient = r->gradient;
    last->mlm = r->sum[TR_LOSS_MLM];
    last->nsp = r->sum[TR_LOSS_NSP];
    last->loss = last->mlm + last->nsp;
    last->seconds = train_clock(CLOCK_MONOTONIC) - t->started;
    last->processor = train_clock(CLOCK_PROCESS_CPUTIME_ID) - t->used;
    last->graphs = r->graphs;
    last->launches = r->launches;
    for (uint64_t i = 0; i < r->steps; i++) {
        report_add(&t->unprinted, &t->queue[i].report);
        t->idle += t->queue[i].report.idle;
    }
    t->state.run = t->queue[r->steps - 1].run;
    run_state_note_positions(&t->state, t->loader);
}

/* Like train_settle, but never calls MPI_Abort. */
static int finish_steps(training *t)
{
    uint64_t n = t->n_queued;
    tr_results r;
    const char *why;

    if (t->device == NULL || (n == 0 && t->state.failed))
        return STATUS_OK;
    t->n_queued = 0;
    if (!t->device->ops->finish(t->device, &r, &why)) {
        t->state.failed = true;
        return train_fail(why);
    }
    if (r.steps > 0)
        record_steps(t, &r);
    if (r.steps == n)
        return STATUS_OK;
    rank_message("step %" PRIu64 ": the loss is not finite "
                 "(a lower --rate may help)", t->queue[r.steps].report.step);
    return STATUS_FAILURE;
}

int train_settle(training *t)
{
    const int status = finish_steps(t);

    if (status != STATUS_OK && t->state.failed && t->device->is_waited_for) {
        rank_message_flush(true);
        atomic_file_close(&t->state.file);
        tr_workers_abort(&t->workers, status);
    }
    return status;
}

int train_fail_memory(training *t, const char *what)
{
    int status = train_settle(t);

    return status == STATUS_OK ? train_fail(what) : status;
}

/* ---- Printing ---- */

/* Reports a failed write.  After SIGPIPE, main() ends by it instead. */
static int fail_stdout(void)
{
    shutdown_now();
    return shutdown_pipe_broke() ? STATUS_FAILURE
                                 : train_fail("stdout: cannot be written");
}

/* Sums the losses of all ranks, for rank 0 to print. */
static void sum_losses(training *t)
{
    report_step *const s = &t->unprinted;
    double sums[] = {s->loss, s->mlm, s->nsp, s->processor, s->exchange,
                     s->waited};

    tr_workers_sum(&t->workers, sums, 6);
    s->loss = sums[0];
    s->mlm = sums[1];
    s->nsp = sums[2];
    s->processor = sums[3];
    s->exchange = sums[4] / t->workers.ranks;
    s->waited = sums[5] / t->workers.ranks;
    if (t->workers.rank > 0)
        *s = (report_step){0};
}

/* Prints and records the unprinted steps.  Returns false if stdout failed; sets
 * *recorded to STATUS_FAILURE if the metrics failed. */
static bool print_steps(training *t, int *recorded)
{
    const bool pairs = t->conf.model.family == TR_BERT;

    *recorded = metrics_step(&t->metrics, &t->unprinted, pairs);
    return report_print(&t->unprinted, t->conf.stats, pairs);
}

/*
 * If signals are deferred, waits until a line fits into stdout, and returns
 * false if a signal is due.
 */
static bool await_reader(const training *t)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    bool ready = t->device == NULL || t->device->shards == NULL;

    while (!ready && !shutdown_is_due())
        ready = poll(&out, 1, LOOK) > 0;
    return ready;
}

int train_print(training *t)
{
    int recorded = STATUS_OK;
    bool written = true;

    shutdown_allow();
    (void)pthread_mutex_lock(&t->printer);
    sum_losses(t);
    if (t->unprinted.steps > 0)
        written = await_reader(t) && print_steps(t, &recorded);
    (void)pthread_mutex_unlock(&t->printer);
    shutdown_forbid();
    if (!written && shutdown_is_due())
        return STATUS_FAILURE;
    return written ? recorded : fail_stdout();
}

/* ---- After a signal ---- */

int train_save_and_print(void *context)
{
    training *t = context;
    struct timespec limit;
    int settled, status, recorded;

    rank_message_flush(true);
    rank_message_hold(false);
    settled = finish_steps(t);
    status = run_state_save(&t->state, t->device, t->model, t->lamb);
    atomic_file_close(&t->state.file);
    (void)clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += PATIENCE;
    if (train_is_alone(t) &&
        pthread_mutex_timedlock(&t->printer, &limit) == 0)
        (void)print_steps(t, &recorded);
    return settled == STATUS_OK ? status : settled;
}
