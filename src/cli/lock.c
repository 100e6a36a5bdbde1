/*
 * lock.c - a file that one process at a time writes.
 *
 * The lock belongs to the open file, so it outlives that the process opens
 * the same file once more, to read it, and closes that.  Two jobs that a
 * shell gives one open file, as their standard output, share it.
 *
 * SPDX-License-Identifier: MIT
 */

/* For F_OFD_SETLK, which POSIX has since 2024. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "cli/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#ifndef F_OFD_SETLK
#define F_OFD_SETLK F_SETLK
#endif

bool lock_take(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int status;

    do {
        status = fcntl(fd, F_OFD_SETLK, &whole);
    } while (status == -1 && errno == EINTR);
    if (status != -1)
        return true;
    if (errno == EACCES)
        errno = EAGAIN;
    return errno == ENOLCK || errno == EINVAL || errno == ENOSYS ||
           errno == ENOTSUP;
}
