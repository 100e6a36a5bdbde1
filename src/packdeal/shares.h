/*
 * shares.h - write a stream of packs or of token records for each rank.
 *
 * Regular files get their names once all of them are complete.  Threads write
 * packs to pipes, so that a slow reader delays other readers only after its
 * buffer is full.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKDEAL_SHARES_H
#define PACKDEAL_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "files/file_set.h"
#include "packdeal/conf.h"
#include "packdeal/input.h"
#include "packstream.h"

typedef struct share {
    int fd;       /* -1: not open */
    char *name;   /* owned; NULL: stdout */
    bool regular; /* a regular file, not a pipe or device */
    /* at most one of `writer` and `tokens` is not NULL; owned */
    ps_pack_writer *writer;
    ps_token_writer *tokens;
} share;

typedef struct shares {
    const conf *conf;
    share *of;  /* one per rank, or only the share of --rank */
    uint32_t n; /* number of shares */
    file_set set;
    int status; /* STATUS_OK, or the status of a failure already reported */
} shares;

/* Opens all outputs.  On failure, prints a message and returns false. */
bool shares_open(shares *s, const conf *c);

/*
 * Enters the sandbox, in which inputs can still be read and files published.
 * On failure, prints a message and returns false.
 */
bool shares_sandbox(shares *s);

/*
 * Starts a stream of token records in each share.  On failure, prints a message
 * and returns false.
 */
bool shares_begin_tokens(shares *s, const ps_schema *schema);

/*
 * Starts a pack stream in each share, for the input stream with header `info`.
 * Errors of the header are reported for the input `name`.  On failure, prints a
 * message and returns false.
 */
bool shares_begin(shares *s, const ps_pack_info *info, const char *name);

/*
 * Ends the stream, whose input has `totals`, and starts the stream with header
 * `next`, if it is not NULL.  On failure, prints a message and returns false.
 */
bool shares_end_stream(shares *s, const ps_totals *totals,
                       const ps_pack_info *next, const char *name);

/*
 * Waits until everything is written, after the last stream has ended.  On
 * failure, prints a message and returns false.
 */
bool shares_finish(shares *s);

/* The share of a rank, or NULL if it is not written. */
share *shares_of(const shares *s, uint32_t rank);

/*
 * Writes a pack to the share of a rank, if there is one, without the sequences
 * that are `omitted`, as for ps_pack_writer_put_without; NULL: none.  On
 * failure, prints a message and returns false.
 */
bool shares_put(shares *s, uint32_t rank, const input_pack *pack,
                const bool *omitted);

/*
 * Flushes the pipes, so that their readers get the whole step.  On failure,
 * prints a message and returns false.
 */
bool shares_push(shares *s);

/*
 * Closes everything.  If `status` is STATUS_OK and nothing fails, regular files
 * get their names; otherwise they are removed.  Returns the exit status.
 */
int shares_end(shares *s, int status);

#endif
