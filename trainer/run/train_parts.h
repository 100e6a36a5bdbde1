/*
 * train_parts.h - the struct of a training run, and the functions its files
 * share.
 *
 * Functions that return int print or hold a message on failure and return an
 * exit status, unless stated otherwise.
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
#include "model/bert/model.h"
#include "optim/lamb.h"
#include "ranks/workers.h"
#include "run/conf.h"
#include "run/report.h"
#include "run/run_state.h"

/* The state after a queued step, if it succeeds. */
typedef struct queued_step {
    report_step report; /* excluding the device's results */
    checkpoint_run run;
    bool idle; /* it had no targets */
} queued_step;

#define QUEUE_MAX 64 /* steps */

/* The members of a run. */
typedef struct training {
    conf conf;
    tr_workers workers;
    tr_device *device;
    tr_loader *loader;
    bert_model *model;
    tr_lamb *lamb;
    run_state state;
    checkpoint_run now; /* state.run plus the queued steps */
    queued_step queue[QUEUE_MAX];
    uint64_t n_queued;
    double started, used; /* seconds, when the first step was queued */
    uint64_t idle;        /* steps without targets */
    report_step unprinted;
    pthread_mutex_t printer; /* protects `unprinted` */
} training;

static inline bool train_is_alone(const training *t)
{
    return t->workers.ranks == 1;
}

/* ---- train_agree.c ---- */

/* Reports `what`; returns STATUS_FAILURE. */
int train_fail(const char *what);

/* A signal can also truncate the input; then it ends the process here. */
int train_fail_loader(const training *t, const ps_error *err);

/*
 * Returns STATUS_OK if all ranks succeeded with the same digest.  Otherwise all
 * end with the status of the lowest rank that failed, which prints its message.
 * Every failure passes through here before the next joint operation, so no rank
 * waits for one that has ended.
 */
int train_agree(training *t, int status, uint64_t digest);

/* ---- train_setup.c ---- */

/*
 * Returns -1, or the exit status.  Rank 0 parses first, so that the help or a
 * message is printed once.
 */
int train_parse(training *t, int argc, char **argv);

/* Opens the device and the checkpoint, and catches signals. */
int train_prepare(training *t);

int train_open_loader(training *t);

/* Called once all ranks have opened their input. */
int train_join_loader(training *t);

int train_open_model(training *t);
int train_resume(training *t);

/* ---- train_device.c ---- */

/* If cuDNN cannot be opened and auto chose it, continues without. */
int train_open_device(training *t);

/* Connects the devices of all ranks for sums. */
int train_join_devices(training *t);

/* A bert_bucket_done: starts to sum a bucket over ranks during backward. */
void train_sum_bucket(void *context, size_t i);

/* If a device failed, all ranks end before they use its sums. */
int train_end_sums(training *t);

/* ---- train_steps.c ---- */

int train_steps(training *t);

/* ---- train_settle.c ---- */

/* Seconds. */
double train_clock(clockid_t clock);

/*
 * Waits for the queued steps.  After a failure the model and state.run are as
 * after the last successful step.  If the device itself failed, nothing can be
 * saved, which is reported once.  Only for the main thread, as it may call
 * MPI_Abort: that ends all ranks if a device failed that others wait for.
 */
int train_settle(training *t);

/* Reports `what`, or the failure of the device that caused it. */
int train_fail_memory(training *t, const char *what);

/* Prints the unprinted steps.  The reader may be slow. */
int train_print(training *t);

/* The shutdown_action of a run; the main thread waits or prints meanwhile. */
int train_save_and_print(void *context);

#endif /* TR_RUN_TRAIN_PARTS_H */
