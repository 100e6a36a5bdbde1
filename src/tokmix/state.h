/*
 * state.h - the state of a mix, kept in a file, and what follows from it when
 * the mix is begun again; tokmix(1), --state.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKMIX_STATE_H
#define TOKMIX_STATE_H

#include "cli/atomic_file.h"
#include "cli/kept_records.h"
#include "tokmix/conf.h"
#include "tokmix/mix.h"
#include "tokmix/sources.h"

typedef struct state {
    const conf *conf;
    atomic_file file;
    unsigned char *bytes; /* that were read, or NULL */
    size_t n_bytes;
    kept_records out;
    bool goes_on; /* a mix that was stopped */
    bool ended;   /* nothing is left to do */
    uint64_t written; /* bytes or sequences since the last was saved */
} state;

/*
 * Reads the state, if there is one and the command line wants to go on from
 * it.  An exit status after a message, here and below.
 */
int state_open(state *s, const conf *c);

/* Opens the output: that of the state, as it was then, or a new one. */
int state_open_output(state *s, records *out);

/*
 * Takes the sources and the mix to where they were, if they are those of the
 * state, whose output has this schema.  Of a mix that has ended they are only
 * compared.
 */
int state_restore(state *s, sources *in, mix *m, const ps_schema *schema);

/*
 * Starts the stream: goes on with it, or begins it, but first saves a state
 * that says where it will be.
 */
int state_start(state *s, records *out, const sources *in, const mix *m);

/* With a mix that has ended nothing is to be done but this. */
int state_finish_again(state *s, records *out);

/* Counts a sequence that was written; whether it is time to save. */
bool state_is_due(state *s, uint64_t bytes);

/* Brings what was written to the disk, and saves the state. */
int state_save(state *s, records *out, const sources *in, const mix *m,
               bool ended);

void state_close(state *s);

#endif
