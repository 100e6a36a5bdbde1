/*
 * rejects.h - the stream of dropped and truncated sequences, with their
 * original contents; packstream(1), --rejects.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_REJECTS_H
#define PACKSTREAM_REJECTS_H

#include "common/reject_reasons.h"
#include "files/resumable_output.h"
#include "packstream.h"
#include "packstream/conf.h"

/* Position and fingerprint of the rejects, saved in the state. */
typedef struct rejects_position {
    ps_token_mark stream;
    output_fingerprint file;
} rejects_position;

typedef struct rejects {
    const char *name; /* NULL: no such stream */
    ps_schema schema;
    int fd;                    /* -1: not open */
    bool resumable;            /* the job has a state */
    bool resumes;              /* the file was begun by an earlier job */
    resumable_output file;     /* used if `resumable` */
    rejects_position position; /* part of the stream that is on disk */
    ps_token_writer *writer;   /* owned; NULL until the stream starts */
    unsigned char *payload;    /* buffer for one record; owned */
    size_t size;               /* allocated size of `payload`, in bytes */
} rejects;

/*
 * Prepares the stream for sequences of `schema`, if rejects are written.  It
 * resumes at `from`, or is new if `from` is NULL.  Like the functions below,
 * returns an exit status and prints a message on failure.
 */
int rejects_plan(rejects *r, const conf *c, const ps_schema *schema,
                 const rejects_position *from);

/*
 * Opens the file of a job with a state.  If the stream resumes, the data before
 * its position must be unchanged.  Without a state, the caller sets r->fd
 * instead.
 */
int rejects_open(rejects *r);

/* Checks that the file ends at the position, as after a completed job. */
int rejects_check_end(const rejects *r);

/* Truncates the file to its position and starts the stream there. */
int rejects_start(rejects *r);

/* Syncs everything written so far and sets r->position. */
int rejects_sync(rejects *r);

/* Writes a sequence; `reason` is one of REJECT_*. */
int rejects_put(rejects *r, const ps_sequence *sequence, int reason);

/*
 * Ends the stream: with END if `complete` and `status` is STATUS_OK, otherwise
 * without.  With --state, also syncs it and sets r->position, unless the job
 * failed.  Returns `status` if the job failed already, and prints nothing then;
 * otherwise the status of the first failure.
 */
int rejects_close(rejects *r, int status, bool complete);

#endif
