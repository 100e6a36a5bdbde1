/*
 * state.h - the state of a job, kept in a file, so that a job that was stopped
 * can resume; tokcat(1), --state.
 *
 * A state is of the output alone.  A resumed job reads its inputs from the
 * beginning and makes the same records again, which are not written until
 * their digest is that of the output: so it resumes with inputs of all forms,
 * also from pipes, and notices if they have changed.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_STATE_H
#define TOKCAT_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/atomic_file.h"
#include "cli/kept_records.h"
#include "cli/records.h"
#include "tokcat/conf.h"

typedef struct state {
    const conf *conf;
    atomic_file file;
    unsigned char *bytes; /* that were read, or NULL */
    size_t n_bytes;
    kept_records out;
    bool ended;       /* nothing is left to do */
    bool replays;     /* records are compared, not written... */
    int fd;           /* ...to this output, or -1 */
    uint64_t written; /* bytes or sequences since the last state */
} state;

/*
 * Reads the state, if --state names one.  Calls that return an int give an
 * exit status, after a message if it is not STATUS_OK.
 */
int state_open(state *s, const conf *c, const char *const *names, int n);

/* Opens the output: that of the state, as it was then, or a new one. */
int state_open_output(state *s, records *out);

/* Starts the stream, whose schema is final, or the comparison with it. */
int state_start(state *s, records *out);

/* Writes a record; saves the state if it is time. */
int state_put(state *s, records *out, uint32_t n_tok,
              const unsigned char *payload);

/* Ends and closes the stream. */
int state_finish(state *s, records *out);

/* For a job that has ended before: checks its output, and leaves it. */
int state_leave(state *s, records *out);

void state_close(state *s);

#endif
