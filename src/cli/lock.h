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
 * does not wait for it; it lasts until `fd` is closed for good.  False with
 * errno, which is EAGAIN if another process has it.  Where a file system
 * knows no locks there is none, and that is true as well.
 */
bool lock_take(int fd);

#endif
