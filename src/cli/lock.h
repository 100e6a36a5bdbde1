/*
 * lock.h - a file that one process at a time writes.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_LOCK_H
#define CLI_LOCK_H

#include <stdbool.h>

/*
 * Takes the lock of the regular file `fd`, which is open for writing, and
 * does not wait for it; it lasts until it is dropped, or `fd` is closed by all
 * processes that share it.  False with errno, which is EAGAIN if another
 * process has it.  Where a file system knows no locks there is none, and that
 * is true as well.
 */
bool lock_take(int fd);

/* Drops it, if there is one, for all who share `fd`. */
void lock_drop(int fd);

#endif
