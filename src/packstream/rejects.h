/*
 * rejects.h - the stream of sequences that were dropped or truncated, as
 * they came; packstream(1), --rejects.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_REJECTS_H
#define PACKSTREAM_REJECTS_H

#include "cli/output_check.h"
#include "common/reject_reasons.h"
#include "packstream.h"

/* Where the rejects are, for a state. */
typedef struct rejects_mark {
    ps_token_mark stream;
    output_check_mark file;
} rejects_mark;

typedef struct rejects {
    const char *name; /* NULL: there is no such stream */
    ps_schema schema;
    int fd;
    bool marked;       /* there is a state */
    output_check file; /* if so */
    rejects_mark mark; /* of what is on the disk */
    ps_token_writer *writer;
    unsigned char *payload; /* of one record */
    size_t size;
} rejects;

/*
 * Prepares for sequences of `schema`, with `any_token` also for those with
 * tokens outside its vocabulary; there will be no stream if `name` is NULL.
 * An exit status after a message, here and below.
 */
int rejects_plan(rejects *r, const char *name, const ps_schema *schema,
                 bool any_token);

/*
 * Opens the file of a job with a state.  A mark that is not NULL says where the
 * stream goes on, and what is before that must be what it was.  Without a state
 * the caller sets r->fd.
 */
int rejects_open(rejects *r, const rejects_mark *mark);

/*
 * Whether the file ends where the mark does, as that of a job that has ended;
 * false after a message.
 */
bool rejects_are_whole(const rejects *r);

/* Cuts the file to the mark, and starts the stream there. */
int rejects_start(rejects *r, const rejects_mark *mark);

/* Brings all that was written to the disk, and keeps the mark of it. */
int rejects_sync(rejects *r);

/* Writes a sequence. */
int rejects_put(rejects *r, const ps_sequence *sequence, int reason);

/*
 * Ends the stream: with END if `complete` and `status` is STATUS_OK, otherwise
 * truncated.  With --state, also syncs it and writes its last mark, unless the
 * job failed.  Reports nothing if the job failed already.  Returns the status
 * of the first failure.
 */
int rejects_close(rejects *r, int status, bool complete);

#endif
