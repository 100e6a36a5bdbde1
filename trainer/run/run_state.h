/*
 * run_state.h - the state of a run, saved to its checkpoint and resumed.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_RUN_RUN_STATE_H
#define TR_RUN_RUN_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/atomic_file.h"
#include "model/bert/model.h"
#include "optim/lamb.h"
#include "ranks/workers.h"
#include "run/checkpoint.h"
#include "run/conf.h"

typedef struct run_state {
    const char *name; /* NULL: nothing is kept */
    atomic_file file; /* of that name */
    char settings[CHECKPOINT_SETTINGS];
    checkpoint_run run; /* as it was after the last whole step */
    tr_input_position
        *positions; /* then, of ranks behind the first with own shards */
    uint32_t n_positions;
    uint64_t saved;     /* the steps that are in the file */
    bool failed;        /* the file or the device, and that was told */
} run_state;

/*
 * Opens the file of --save, if it is given, before anything is read.  These
 * functions print a message on failure and return an exit status.
 */
int run_state_open(run_state *s, const conf *c);
void run_state_close(run_state *s);

/* Makes room for all positions; false: no memory. */
bool run_state_alloc(run_state *s, const tr_loader *f);

/* Notes the input positions of other ranks after the loader's batch. */
void run_state_note_positions(run_state *s, const tr_loader *f);

/* Goes on from the file, if there is one. */
int run_state_resume(run_state *s, bert_model *model, tr_lamb *l);

/* All ranks go on from what the first one has read. */
void run_state_broadcast(run_state *s, const tr_workers *w, bert_model *model,
                         tr_lamb *l);

/* Keeps the steps that are not in the file; the device has made them. */
int run_state_save(run_state *s, tr_device *device, bert_model *model,
                   tr_lamb *l);

#endif /* TR_RUN_RUN_STATE_H */
