/*
 * lock.c - a file that one process at a time writes.
 *
 * The lock belongs to the open file, so it outlives that the process opens
 * the same file once more, to read it, and closes that.  Two jobs that a
 * shell gives one open file, as their standard output, share it; and as long
 * as any process has that open, the lock stays, unless it is dropped.
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

/*
 * Where there is no such lock, one that belongs to the process has to do.  It
 * is worth less: it ends as soon as the process closes the file, however it
 * had it open, and a job does so with what it opened to read it again.
 */
#ifndef F_OFD_SETLK
#define F_OFD_SETLK F_SETLK
#endif

static bool set(int fd, short type)
{
    struct flock whole = {.l_type = type, .l_whence = SEEK_SET};
    int status;

    do {
        status = fcntl(fd, F_OFD_SETLK, &whole);
    } while (status == -1 && errno == EINTR);
    return status != -1;
}

bool lock_take(int fd)
{
    if (set(fd, F_WRLCK))
        return true;
    if (errno == EACCES)
        errno = EAGAIN;
    return errno == ENOLCK || errno == EINVAL || errno == ENOSYS ||
           errno == ENOTSUP;
}

void lock_drop(int fd)
{
    (void)set(fd, F_UNLCK);
}
