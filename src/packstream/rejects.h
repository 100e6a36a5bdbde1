/*
 * rejects.h - the stream of sequences that were dropped or truncated, as
 * they came; packstream(1), --rejects.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_REJECTS_H
#define PACKSTREAM_REJECTS_H

#include "packstream.h"

/* Why a sequence is there; the values of the channel `reason`. */
enum {
    REJECT_OVERLONG_DROPPED = 1,
    REJECT_OVERLONG_TRUNCATED = 2,
    REJECT_OUT_OF_VOCAB = 3
};

typedef struct rejects {
    const char *name; /* NULL: there is no such stream */
    ps_schema schema;
    int fd;
    ps_token_writer *writer;
    unsigned char *payload; /* of one record */
    size_t size;
} rejects;

/*
 * Prepares for sequences of `schema`, with `any_token` also for those with
 * tokens outside its vocabulary; there will be no stream if `name` is NULL.
 * An exit status; messages are given, here and below.
 */
int rejects_plan(rejects *r, const char *name, const ps_schema *schema,
                 bool any_token);

/*
 * Opens the file that was planned; a mark that is not NULL says where it is
 * to go on.
 */
int rejects_open(rejects *r, const ps_token_mark *mark);

/* Starts the stream there, in a file that is cut now. */
int rejects_start(rejects *r, const ps_token_mark *mark);

/* Has all that was written on the disk, and tells where that is. */
int rejects_sync(rejects *r, ps_token_mark *mark);

/* Writes a sequence. */
int rejects_put(rejects *r, const ps_sequence *sequence, int reason);

/*
 * Ends and closes the stream if `complete`, else leaves it cut; with `sync`
 * it is on the disk then.
 */
int rejects_close(rejects *r, bool complete, bool sync);

#endif
