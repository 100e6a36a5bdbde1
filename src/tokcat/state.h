/*
 * state.h - the state of a job, to resume it later; see tokcat(1), --state.
 *
 * The state describes only the output.  A resumed job reads its inputs from the
 * start and produces the same records again.  These records are not written,
 * but their digest is compared with the digest of the output.  This works for
 * inputs of all forms, including pipes, and detects changed inputs.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_STATE_H
#define TOKCAT_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "files/checkpoint.h"
#include "files/resumable_records.h"
#include "files/records.h"
#include "tokcat/conf.h"

typedef struct state {
    const conf *conf;
    checkpoint saved;
    resumable_records out;
    bool ended;   /* the earlier job has ended, so there is nothing to do */
    bool replays; /* records are not written, only added to the digest */
    int fd;       /* descriptor of the output during a replay; -1: none */
} state;

/*
 * Reads the state if --state names a file that exists.  Functions returning int
 * return an exit status and print a message on failure.
 */
int state_open(state *s, const conf *c, const char *const *names, int n);

/* Opens the output of the state, without changing it, or a new output. */
int state_open_output(state *s, records *out);

/* Starts the stream or the replay.  The schema must not change afterwards. */
int state_start(state *s, records *out);

/* Writes a record, and saves the state if one is due. */
int state_put(state *s, records *out, uint32_t n_tok,
              const unsigned char *payload);

/* Ends and closes the stream. */
int state_finish(state *s, records *out);

/* Checks and closes the output of a job that had already ended. */
int state_leave(state *s, records *out);

void state_close(state *s);

#endif
