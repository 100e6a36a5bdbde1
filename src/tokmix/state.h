/*
 * state.h - the state of a mix, to resume it later; see tokmix(1), --state.
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
    bool resumes; /* a mix that was stopped is resumed */
    bool ended;   /* the earlier mix has ended, so there is nothing to do */
} state;

/*
 * Reads the state if it exists and --resume is given.  Functions returning int
 * return an exit status and print a message on failure.
 */
int state_open(state *s, const conf *c);

/* Opens the output of the state, without changing it, or a new output. */
int state_open_output(state *s, records *out);

/*
 * Checks that the sources match the state, whose output has schema `schema`,
 * and restores their positions and the mix.  If the mix has ended, restores
 * nothing.
 */
int state_restore(state *s, sources *in, mix *m, const ps_schema *schema);

/* Resumes the stream, or saves a state with its start and starts it. */
int state_start(state *s, records *out, const sources *in, const mix *m);

/* Checks and closes the output of a mix that has already ended. */
int state_finish_again(state *s, records *out);

/* Syncs the output and saves the state. */
int state_save(state *s, records *out, const sources *in, const mix *m,
               bool ended);

void state_close(state *s);

#endif
