/*
 * train_parts.h - the state of a training run, and the functions that its
 * source files share.
 *
 * Functions that return int return an exit status; on failure they print or
 * hold a message, unless stated otherwise.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_RUN_TRAIN_PARTS_H
#define TR_RUN_TRAIN_PARTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "cli/message.h"
#include "data/data_loader.h"
#include "model/model.h"
#include "optim/lamb.h"
#include "ranks/workers.h"
#include "run/conf.h"
#include "run/metrics.h"
#include "run/report.h"
#include "run/run_state.h"

/* The state after a queued step, valid if the step succeeds. */
typedef struct queued_step {
    report_step report; /* without the device's results */
    checkpoint_run run;
} queued_step;

#define QUEUE_MAX 64 /* maximum number of queued steps */

/* The members of a run. */
typedef struct training {
    conf conf;
    tr_workers workers;
    tr_device *device;
    tr_loader *loader;
    tr_model *model;
    tr_lamb *lamb;
    run_state state;
    metrics metrics;
    uint64_t evaluated; /* number of steps at the last evaluation, plus 1 */
    bool saves;         /* true if rank 0 saves or exports the state */
    uint64_t gathered;  /* steps of the state that rank 0 can save */
    checkpoint_run now; /* state.run plus the queued steps */
    queued_step queue[QUEUE_MAX];
    uint64_t n_queued;
    double started, used; /* clocks at the first queued step, in seconds */
    uint64_t idle;        /* number of steps without targets */
    report_step unprinted;
    pthread_mutex_t printer; /* protects `unprinted` */
} training;

static inline bool train_is_alone(const training *t)
{
    return t->workers.ranks == 1;
}

/* ---- train_agree.c ---- */

/* Reports `what`.  Returns STATUS_FAILURE. */
int train_fail(const char *what);

/* Reports a loader error.  Ends the process if a signal has arrived. */
int train_fail_loader(const training *t, const ps_error *err);

/*
 * Returns STATUS_OK if all ranks succeeded with the same digest.  Otherwise,
 * all ranks end with the status of the lowest rank that failed, and that rank
 * prints its message.  Every failure passes through here before the next joint
 * operation, so no rank waits for a rank that has ended.
 */
int train_agree(training *t, int status, uint64_t digest);

/* ---- train_setup.c ---- */

/*
 * Parses the options.  Returns -1 to continue, or the exit status.  Rank 0
 * parses first, so that the help or a message is printed only once.
 */
int train_parse(training *t, int argc, char **argv);

/* Opens the device and the checkpoint, and catches signals. */
int train_prepare(training *t);

int train_open_loader(training *t);

/* Connects the loaders, once all ranks have opened their input. */
int train_join_loader(training *t);

int train_open_model(training *t);

/* Opens the optimiser, after the devices have divided the moments. */
int train_open_optimiser(training *t);
int train_resume(training *t);

/* ---- train_device.c ---- */

/* Opens the device, without cuDNN if it fails and --attention=auto chose it. */
int train_open_device(training *t);

/* Connects the devices of all ranks for sums. */
int train_join_devices(training *t);

/* Makes forward and backward exchange each bucket with other ranks. */
void train_watch_buckets(training *t);

/* Waits for all sums.  Fails on all ranks if a device has failed. */
int train_end_sums(training *t);

/*
 * Gathers the state on rank 0 if its ranks have shards and save.  All ranks
 * must call it, after train_settle and before run_state_save.
 */
int train_gather(training *t);

/* ---- train_steps.c ---- */

int train_steps(training *t);

/* Packs that a rank computes at a time; 0: all packs of a step. */
uint32_t train_micro_batch(const training *t);

/* ---- train_eval.c ---- */

/* Checks, before the first step, that --eval can be read. */
int train_check_eval(const training *t);

/* Evaluates the model on the packs of --eval, and reports the result. */
int train_evaluate(training *t);

/* The same at the end of a run, if --eval is given and the last step was not
 * evaluated. */
int train_evaluate_last(training *t);

/* ---- train_folder.c ---- */

/* Reads the weights of --init. */
int train_load(training *t);

/* Checks, before any input is read, that --export can be written. */
int train_check_export(const training *t);

/* Writes the model of --export. */
int train_export(training *t);

/* ---- train_settle.c ---- */

/* Returns the time of a clock, in seconds. */
double train_clock(clockid_t clock);

/*
 * Waits for the queued steps.  After a failure, the model and state.run are as
 * after the last successful step.  If the device itself has failed, nothing can
 * be saved, which is reported once.  Only the main thread may call this,
 * because it calls MPI_Abort if a device that other ranks wait for has failed.
 */
int train_settle(training *t);

/* Reports `what`, or the failure of the device that caused it. */
int train_fail_memory(training *t, const char *what);

/* Prints the unprinted steps.  This can block if the reader is slow. */
int train_print(training *t);

/* The shutdown_action of a run, while the main thread waits or prints. */
int train_save_and_print(void *context);

#endif /* TR_RUN_TRAIN_PARTS_H */
