/*
 * in_file.c - a regular file that is read at any offset.
 *
 * SPDX-License-Identifier: MIT
 */
#include "folder/in_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/error.h"
#include "files/files.h"

ps_result in_file_open(int folder, const char *name, int *fd, uint64_t *size,
                       ps_error *err)
{
    /* O_NONBLOCK: opening a FIFO does not wait for a writer. */
    const int open = files_openat(folder, name, O_RDONLY | O_NONBLOCK);
    ps_result r = PS_OK;
    struct stat st;

    *fd = -1;
    if (open < 0)
        return tr_error_errno(err);
    if (fstat(open, &st) != 0)
        r = tr_error_errno(err);
    else if (!S_ISREG(st.st_mode))
        r = tr_error(err, PS_ERR_ARGUMENT, "not a regular file");
    if (r != PS_OK) {
        (void)close(open);
        return r;
    }
    *fd = open;
    *size = (uint64_t)st.st_size;
    return PS_OK;
}

ps_result in_file_read(int fd, void *bytes, size_t n, uint64_t at,
                       ps_error *err)
{
    unsigned char *to = bytes;

    while (n > 0) {
        const ssize_t got = pread(fd, to, n, (off_t)at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tr_error_errno(err);
        if (got == 0)
            return tr_error(err, PS_ERR_TRUNCATED, "the file ends at byte %llu",
                            (unsigned long long)at);
        to += got;
        at += (uint64_t)got;
        n -= (size_t)got;
    }
    return PS_OK;
}
