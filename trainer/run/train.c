/*
 * train.c - packtrain: train models on packed data.
 *
 * Steps are queued on the device.  The host waits for the queued steps only
 * before it prints or saves, which settles them.  On the CPU, each step is
 * settled at once.
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>
#include <signal.h>

#include "run/rank_message.h"
#include "run/shutdown.h"
#include "run/train_parts.h"

/* Saves the state after the last complete step, even if the run has failed. */
static int finish(training *t, int status)
{
    int settled, saved, printed;

    rank_message_hold(false);
    settled = train_settle(t);
    saved = train_gather(t);
    shutdown_defer(false);
    if (saved == STATUS_OK)
        saved = run_state_save(&t->state, t->device, t->model, t->lamb);
    printed = train_print(t);
    if (status == STATUS_OK)
        status = settled;
    if (status != STATUS_OK)
        return status;
    shutdown_now();
    if (saved != STATUS_OK || printed != STATUS_OK)
        return saved != STATUS_OK ? saved : printed;
    if (t->workers.rank == 0 && t->state.run.steps < t->conf.steps)
        rank_message("the input ended after %" PRIu64 " of %" PRIu64
                     " steps: raise --epochs", t->state.run.steps,
                     t->conf.steps);
    if (t->idle < t->state.run.steps)
        return train_export(t);
    if (t->workers.rank > 0)
        return STATUS_DATA;
    rank_message(
        "%s: %s", tr_loader_name(t->loader),
        t->state.run.steps == 0
            ? "no packs"
            : "nothing was learnt: no step had a target");
    return STATUS_DATA;
}

static void close_all(training *t)
{
    tr_loader_free(t->loader); /* the loader's thread may still use MPI */
    tr_workers_close(&t->workers);
    tr_lamb_free(t->lamb);
    tr_model_free(t->model);
    tr_device_close(t->device);
    run_state_close(&t->state);
    (void)metrics_close(&t->metrics);
}

int main(int argc, char **argv)
{
    training t = {.printer = PTHREAD_MUTEX_INITIALIZER,
                  .workers = {.ranks = 1},
                  .state = {.file = ATOMIC_FILE_CLOSED}};
    int status, evaluated = STATUS_OK;

    message_init("packtrain"); /* tests build the program under other names */
    (void)signal(SIGXFSZ, SIG_IGN); /* a write then fails with EFBIG */
    status = train_parse(&t, argc, argv);
    if (status >= 0) {
        close_all(&t);
        return status;
    }
    status = train_prepare(&t);
    if (status == STATUS_OK)
        status = train_open_loader(&t);
    status = train_agree(&t, status, 0);
    if (status == STATUS_OK) {
        status = train_join_loader(&t);
        if (status == STATUS_OK)
            status = train_open_model(&t);
        if (status == STATUS_OK)
            status = train_load(&t);
        if (status == STATUS_OK)
            status = train_check_eval(&t);
        status = train_agree(&t, status, 0);
    }
    if (status == STATUS_OK)
        status = train_join_devices(&t);
    if (status == STATUS_OK)
        status = train_open_optimiser(&t);
    if (status == STATUS_OK)
        status = train_resume(&t);
    if (status == STATUS_OK)
        status = train_steps(&t);
    /* If the last evaluation fails, the run is still saved and exported. */
    if (status == STATUS_OK)
        evaluated = train_evaluate_last(&t);
    status = finish(&t, status);
    if (status == STATUS_OK)
        status = evaluated;
    close_all(&t);
    if (status == STATUS_FAILURE && !t.state.failed && shutdown_pipe_broke())
        shutdown_by_signal(SIGPIPE);
    return status;
}
