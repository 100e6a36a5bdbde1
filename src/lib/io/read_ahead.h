/*
 * read_ahead.h - an input read piece by piece, ahead of its use on a thread of
 * its own if asked for.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_IO_READ_AHEAD_H
#define LIB_IO_READ_AHEAD_H

#include "io/block.h"
#include "packstream.h"

typedef struct ps_read_ahead ps_read_ahead;

/* What one read brought. */
typedef struct ps_span {
    ps_block *block; /* in which it lies */
    unsigned char *bytes;
    size_t n; /* 0 at the end of the input */
} ps_span;

/* Reads `fd` into blocks of a pool.  PS_ERR_MEMORY. */
ps_result ps_read_ahead_open(ps_read_ahead **read_ahead, int fd, ps_pool *pool,
                             ps_error *err);

/*
 * A bound of the memory that it takes, with the pool and its blocks but for
 * those that others hold.
 */
uint64_t ps_read_ahead_bytes(bool threaded);

/*
 * Reads on a thread from now on; if none can be started, the user goes on
 * reading.  PS_ERR_IO.
 */
ps_result ps_read_ahead_start(ps_read_ahead *read_ahead, ps_error *err);

/*
 * The next piece of the input, where the one before it ended or in another
 * block.  A block must be held until a piece in another one came.
 * PS_ERR_IO, PS_ERR_MEMORY.
 */
ps_result ps_read_ahead_next(ps_read_ahead *read_ahead, ps_span *span,
                             ps_error *err);

/*
 * Reads at most `size` bytes, *n of them, to `to`; 0 at the end of the input.
 * For an input that no thread reads.  PS_ERR_IO.
 */
ps_result ps_read_ahead_into(ps_read_ahead *read_ahead, unsigned char *to,
                             size_t size, size_t *n, ps_error *err);

/*
 * Passes over at most `n` bytes without reading them, which can be done in a
 * regular file that no thread reads.  Returns how many it were.
 */
uint64_t ps_read_ahead_skip(ps_read_ahead *read_ahead, uint64_t n);

/*
 * Whether ps_read_ahead_next would wait for input that has not come.  If so,
 * the descriptor becomes readable as soon as it would not.
 */
bool ps_read_ahead_would_wait(ps_read_ahead *read_ahead);
int ps_read_ahead_descriptor(const ps_read_ahead *read_ahead);

/* Ends the thread.  The pool must be closed after this. */
void ps_read_ahead_free(ps_read_ahead *read_ahead);

#endif
