/*
 * ahead.h - an input read block by block, ahead of its use on a thread of
 * its own if asked for.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_AHEAD_H
#define LIB_AHEAD_H

#include "packstream.h"

typedef struct ps_ahead ps_ahead;

/* What of the block before may be copied in front of a block. */
#define PS_AHEAD_HEADROOM ((size_t)64 << 10)

/* PS_ERR_MEMORY. */
ps_result ps_ahead_open(ps_ahead **ahead, int fd, ps_error *err);

/* Reads on a thread from now on.  PS_ERR_IO, PS_ERR_MEMORY. */
ps_result ps_ahead_start(ps_ahead *ahead, ps_error *err);

/*
 * The next bytes of the input; none at its end, where it must not be called
 * again.  They may be changed, and so may PS_AHEAD_HEADROOM bytes in front
 * of them, until it has been called twice more.  PS_ERR_IO.
 */
ps_result ps_ahead_next(ps_ahead *ahead, unsigned char **bytes, size_t *n,
                        ps_error *err);

/*
 * Whether ps_ahead_next would wait for input that has not come.  If so, the
 * descriptor can be read as soon as it would not.
 */
bool ps_ahead_would_wait(ps_ahead *ahead);
int ps_ahead_descriptor(const ps_ahead *ahead);

void ps_ahead_free(ps_ahead *ahead);

#endif
