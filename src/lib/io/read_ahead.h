/*
 * read_ahead.h - input read in pieces, optionally ahead on a thread.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_IO_READ_AHEAD_H
#define LIB_IO_READ_AHEAD_H

#include "io/block.h"
#include "packstream.h"

typedef struct ps_read_ahead ps_read_ahead;

/* The result of one read. */
typedef struct ps_span {
    ps_block *block;      /* contains `bytes` */
    unsigned char *bytes; /* valid while the block is held */
    size_t n;             /* 0 at the end of the input */
} ps_span;

/* Reads `fd` into blocks from `pool`.  PS_OK, PS_ERR_MEMORY. */
ps_result ps_read_ahead_open(ps_read_ahead **read_ahead, int fd, ps_pool *pool,
                             ps_error *err);

/*
 * Upper bound on the memory of a read-ahead, in bytes.  Includes the pool and
 * its blocks, except blocks that others hold.
 */
uint64_t ps_read_ahead_bytes(bool threaded);

/*
 * Starts reading on a thread.  If no thread can be started, reading continues
 * on the user's thread.  PS_OK, PS_ERR_IO.
 */
ps_result ps_read_ahead_start(ps_read_ahead *read_ahead, ps_error *err);

/*
 * Returns the next piece, which directly follows the previous piece in memory
 * or is in another block.  The user must hold a block until it gets a piece in
 * another block.  PS_OK, PS_ERR_IO, PS_ERR_MEMORY.
 */
ps_result ps_read_ahead_next(ps_read_ahead *read_ahead, ps_span *span,
                             ps_error *err);

/*
 * Reads up to `size` bytes directly into `to`.  *n is set to the number read, 0
 * at the end of the input.  Not allowed after ps_read_ahead_start.  PS_OK,
 * PS_ERR_IO.
 */
ps_result ps_read_ahead_into(ps_read_ahead *read_ahead, unsigned char *to,
                             size_t size, size_t *n, ps_error *err);

/*
 * Skips up to `n` bytes by seeking.  Returns the number skipped, which is 0
 * unless the input is a regular file without a reading thread.
 */
uint64_t ps_read_ahead_skip(ps_read_ahead *read_ahead, uint64_t n);

/*
 * True if ps_read_ahead_next would have to wait for input.  In that case,
 * ps_read_ahead_descriptor becomes readable once input is available.
 */
bool ps_read_ahead_would_wait(ps_read_ahead *read_ahead);
int ps_read_ahead_descriptor(const ps_read_ahead *read_ahead);

/* Stops the thread.  Close the pool afterwards. */
void ps_read_ahead_free(ps_read_ahead *read_ahead);

#endif
