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
#include "tokmix/stages.h"

/*
 * The stages of a loaded state.  A state without stages has one, which is
 * endless.
 */
typedef struct saved_stages {
    uint64_t n;
    uint32_t n_sources;
    uint64_t current; /* the stage in which the mix was stopped; n: none */
    uint64_t amount;  /* taken in that stage, in the unit of --by */
    /* start of the first stage's numbers; NULL: a state without stages */
    const unsigned char *numbers;
} saved_stages;

typedef struct state {
    const conf *conf;
    checkpoint saved;
    saved_stages stages; /* in `saved` */
    resumable_records out;
    bool resumes; /* a mix that was stopped is resumed */
    bool ended;   /* the earlier mix has ended, so there is nothing to do */
} state;

/*
 * Reads the state if it exists and --resume is given, and compares it with the
 * options.  Stages that have ended must be the same; the current one must have
 * the same weights; later ones can differ.  Sets the current stage and the
 * lengths of `to`.  Functions returning int return an exit status and print a
 * message on failure.
 */
int state_open(state *s, const conf *c, stages *to);

/* Opens the output of the state, without changing it, or a new output. */
int state_open_output(state *s, records *out);

/*
 * Checks that the sources match the state, whose output has schema `schema`,
 * and restores their positions, the mix and the counts of the stages.  The mix
 * of the current stage must have begun.  If the job has ended, restores the
 * counts only.
 */
int state_restore(state *s, sources *in, mix *m, stages *to,
                  const ps_schema *schema);

/*
 * Resumes the stream, or saves a state with its start and starts it.  The
 * stages of a resumed job are saved at once, so that changes take effect
 * exactly here.
 */
int state_start(state *s, records *out, const sources *in, const mix *m,
                const stages *to);

/* Checks and closes the output of a mix that has already ended. */
int state_finish_again(state *s, records *out);

/* Syncs the output and saves the state. */
int state_save(state *s, records *out, const sources *in, const mix *m,
               const stages *to, bool ended);

void state_close(state *s);

#endif
