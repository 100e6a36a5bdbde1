/*
 * run_state.h - save the state of a run to its checkpoint, and resume it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_RUN_RUN_STATE_H
#define TR_RUN_RUN_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "files/atomic_file.h"
#include "model/model.h"
#include "optim/lamb.h"
#include "ranks/workers.h"
#include "run/checkpoint.h"
#include "run/conf.h"

typedef struct run_state {
    const char *name; /* checkpoint file, or NULL */
    atomic_file file;
    char settings[CHECKPOINT_SETTINGS];
    checkpoint_run run; /* counters after the last complete step */
    tr_input_position *positions; /* of ranks 1 and up, with shards */
    uint32_t n_positions;
    uint64_t saved; /* number of steps when the file was written */
    bool failed;    /* a failure of the file or device was reported */
} run_state;

/*
 * Opens the file of --save, if given, before any input is read.  On failure,
 * the functions that return int print a message and return an exit status.
 */
int run_state_open(run_state *s, const conf *c);
void run_state_close(run_state *s);

/* Allocates the positions.  Returns false if out of memory. */
bool run_state_alloc(run_state *s, const tr_loader *f);

/* Records the input positions of the other ranks after the current batch. */
void run_state_note_positions(run_state *s, const tr_loader *f);

/* Resumes from the file, if it exists. */
int run_state_resume(run_state *s, tr_model *model, tr_lamb *l);

/* Copies rank 0's resumed state to all ranks. */
void run_state_broadcast(run_state *s, const tr_workers *w, tr_model *model,
                         tr_lamb *l);

/* Saves the steps that the device has completed, if the file lacks any. */
int run_state_save(run_state *s, tr_device *device, tr_model *model,
                   tr_lamb *l);

#endif /* TR_RUN_RUN_STATE_H */
