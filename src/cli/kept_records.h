/*
 * kept_records.h - a stream of token records in a regular file, of a job that
 * keeps a state: the job finds it again, goes on with it, and says how far it
 * has come to the disk.
 *
 * Calls that return an int give an exit status, after a message if it is not
 * STATUS_OK.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_KEPT_RECORDS_H
#define CLI_KEPT_RECORDS_H

#include <stdbool.h>

#include "cli/output_check.h"
#include "cli/records.h"
#include "packstream.h"

typedef struct kept_records {
    output_check output;
    ps_token_mark place; /* of the stream that is on the disk, and */
    output_check_mark mark; /* its file; the caller keeps both in the state, */
    const unsigned char *lengths; /* and the lengths so far: those of the state,
                                     or, until the next record, the writer's */
    size_t n_lengths;             /* bytes; 0: the stream gets no LENGTHS */
} kept_records;

/* Opens a new output; without a state it must not be that of another job. */
int kept_records_begin(kept_records *k, records *r, const char *state,
                       bool resume);

/*
 * Opens the output that place and mark are of, a `framed` stream or none, and
 * changes nothing.  Of a job that was stopped before the first byte it may be
 * missing.
 */
int kept_records_reopen(kept_records *k, records *r, bool framed);

/* The schema of a stream of which there is something; raw tokens are `type`. */
int kept_records_schema(const kept_records *k, bool framed, ps_type type,
                        ps_schema *schema);

/* Whether that is the schema of the records that are to follow. */
int kept_records_compare(const kept_records *k, const char *state,
                         const ps_schema *schema);

/* What a new output is known by, before anything is written to it. */
int kept_records_mark(kept_records *k);

/* Cuts the output to its place, and goes on there. */
int kept_records_resume(kept_records *k, records *r);

/* Brings what was written to the disk; place and mark say what that is. */
int kept_records_save(kept_records *k, records *r);

/* Leaves an output that was ended as it is, if it has its length. */
int kept_records_leave(const kept_records *k, records *r);

void kept_records_close(kept_records *k);

#endif
