/*
 * shares.h - what is written: a stream of packs or of token records for each
 * rank.
 *
 * Regular files get their names when all of them are whole.  Pipes have threads
 * that write packs, so that a reader who lags stops the others only once its
 * buffer is full.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKDEAL_SHARES_H
#define PACKDEAL_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/file_set.h"
#include "packdeal/conf.h"
#include "packdeal/input.h"
#include "packstream.h"

typedef struct share {
    int fd; /* -1: not open */
    char *name; /* NULL: stdout */
    bool regular;
    ps_pack_writer *writer; /* one of them, or none */
    ps_token_writer *tokens;
} share;

typedef struct shares {
    const conf *conf;
    share *of; /* of every rank, or of the only one that is asked for */
    uint32_t n;
    file_set set;
    int status; /* of a failure, which was told; else STATUS_OK */
} shares;

/* Opens all outputs; false after a message. */
bool shares_open(shares *s, const conf *c);

/*
 * Gives up what is not needed any more, but for what it takes to read the
 * inputs and to give files their names.  False after a message.
 */
bool shares_sandbox(shares *s);

/* Begins the only stream of token records in each share.  As below. */
bool shares_begin_tokens(shares *s, const ps_schema *schema);

/*
 * Begins a stream in each share, of one with the header `info`.  If that cannot
 * be, it is told of the input `name`.  False after a message.
 */
bool shares_begin(shares *s, const ps_pack_info *info, const char *name);

/*
 * Ends it, `totals` saying what the input of that stream was, and begins the
 * next one; NULL: there is none.  As above.
 */
bool shares_end_stream(shares *s, const ps_totals *totals,
                       const ps_pack_info *next, const char *name);

/* Returns when all is written, after the last has ended.  As above. */
bool shares_finish(shares *s);

/* The share of a rank, or NULL if it is not written. */
share *shares_of(const shares *s, uint32_t rank);

/* Writes a pack to the share of a rank, if there is one.  As above. */
bool shares_put(shares *s, uint32_t rank, const input_pack *pack);

/* Has what readers of pipes wait for written.  False after a message. */
bool shares_push(shares *s);

/*
 * Closes all; if `status` is STATUS_OK and nothing fails, regular files get
 * their names, else they are removed.  The exit status.
 */
int shares_end(shares *s, int status);

#endif
