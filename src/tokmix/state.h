/*
 * state.h - the state of a mix, for resuming it; tokmix(1), --state.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKMIX_STATE_H
#define TOKMIX_STATE_H

#include "files/checkpoint.h"
#include "files/resumable_records.h"
#include "tokmix/conf.h"
#include "tokmix/mix.h"
#include "tokmix/sources.h"

typedef struct state {
    const conf *conf;
    checkpoint saved;
    resumable_records out;
    bool resumes; /* resumes a mix that was stopped */
    bool ended;   /* the earlier mix has ended: nothing to do */
} state;

/*
 * Reads the state if it exists and --resume is given.  Functions returning int
 * return an exit status and print a message on failure.
 */
int state_open(state *s, const conf *c);

/* Opens the output: the unchanged output of the state, or a new one. */
int state_open_output(state *s, records *out);

/*
 * Checks that the sources match the state, whose output has schema `schema`,
 * and restores their positions and the mix.  If the mix has ended, it only
 * checks.
 */
int state_restore(state *s, sources *in, mix *m, const ps_schema *schema);

/* Resumes the stream, or starts one after saving a state with its position. */
int state_start(state *s, records *out, const sources *in, const mix *m);

/* For a mix that has ended: checks and closes its output. */
int state_finish_again(state *s, records *out);

/* Syncs the output and saves the state. */
int state_save(state *s, records *out, const sources *in, const mix *m,
               bool ended);

void state_close(state *s);

#endif
