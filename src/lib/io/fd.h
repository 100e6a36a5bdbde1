/*
 * fd.h - system calls on descriptors, restarted and completed.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_IO_FD_H
#define LIB_IO_FD_H

#include <stdbool.h>
#include <sys/types.h>

#include "packstream.h"

/* The size of our buffers, and of pipes where the system lets us set it. */
#define PS_IO_BYTES ((size_t)256 << 10)

/*
 * read(2), restarted after a signal; waits if the descriptor is non-blocking.
 * Returns what read does.
 */
ssize_t ps_read(int fd, void *buf, size_t n);

/*
 * The `n` bytes at `offset`, by pread(2), restarted and completed.  Returns
 * fewer only where the file ends; -1 with errno.
 */
ssize_t ps_read_at(int fd, void *buf, size_t n, uint64_t offset);

/* Writes all `n` bytes, however the descriptor cuts them up. */
ps_result ps_write_all(int fd, const void *buf, size_t n, ps_error *err);

/* True if a read would have to wait; false for regular files and at EOF. */
bool ps_would_wait(int fd);

/*
 * Waits until `fd` has something to read; false once `quit` has.  Why a wait
 * fails, the next read tells.
 */
bool ps_wait_input(int fd, int quit);

/* Makes a pipe as large as our buffer, if it is one and may be. */
void ps_widen_pipe(int fd);

/*
 * A pipe with which one thread wakes another.  Both ends are non-blocking, and
 * the caller closes them.  PS_ERR_IO.
 */
ps_result ps_wakeup_pipe_open(int wakeup[2], ps_error *err);

/* Makes the first end of such a pipe readable. */
void ps_wake(const int wakeup[2]);

#endif
