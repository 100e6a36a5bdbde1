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
    REJECT_OVERLONG_TRUNCATED = 2
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
 * Prepares for sequences of `schema`; there will be no stream if `name` is
 * NULL.  An exit status; messages are given, here and below.
 */
int rejects_plan(rejects *r, const char *name, const ps_schema *schema);

/* Opens the file that was planned. */
int rejects_open(rejects *r);

/* Writes a sequence. */
int rejects_put(rejects *r, const ps_sequence *sequence, int reason);

/* Ends and closes the stream if `complete`, else leaves it cut. */
int rejects_close(rejects *r, bool complete);

#endif
