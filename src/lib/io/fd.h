/*
 * fd.h - system calls on descriptors, with restarts and retries.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_IO_FD_H
#define LIB_IO_FD_H

#include <stdbool.h>
#include <sys/types.h>

#include "packstream.h"

/* Size of buffers, and of pipes if their size can be set, in bytes. */
#define PS_IO_BYTES ((size_t)256 << 10)

/*
 * read(2), restarted after signals.  Polls if the descriptor is non-blocking.
 * Returns the result of read.
 */
ssize_t ps_read(int fd, void *buf, size_t n);

/*
 * pread(2), restarted until `n` bytes are read.  Returns less than `n` only at
 * the end of the file, and -1 with errno on failure.
 */
ssize_t ps_read_at(int fd, void *buf, size_t n, uint64_t offset);

/* Writes all `n` bytes.  PS_OK, PS_ERR_IO. */
ps_result ps_write_all(int fd, const void *buf, size_t n, ps_error *err);

/* True if a read would block; false for regular files and at end of file. */
bool ps_would_wait(int fd);

/*
 * Polls until `fd` is readable and returns true, or until `quit` is readable
 * and returns false.  If poll fails, returns true, and the next read reports
 * the error.
 */
bool ps_wait_input(int fd, int quit);

/*
 * Increases a pipe's capacity to PS_IO_BYTES if possible.  No effect on other
 * descriptors.
 */
void ps_widen_pipe(int fd);

/*
 * Creates a pipe for waking another thread.  Both ends are non-blocking and
 * close-on-exec.  The caller closes them.  PS_OK, PS_ERR_IO.
 */
ps_result ps_wakeup_pipe_open(int wakeup[2], ps_error *err);

/* Makes the read end, wakeup[0], readable. */
void ps_wake(const int wakeup[2]);

#endif
