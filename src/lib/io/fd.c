/*
 * fd.c - system calls on descriptors, with restarts and retries.
 *
 * SPDX-License-Identifier: MIT
 *
 * A descriptor can be non-blocking because another process that shares it set
 * the flag.  In that case these functions poll instead of failing.
 */

/* F_SETPIPE_SZ is specific to Linux. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "io/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "base/error.h"

/* Polls until `fd` is ready.  Returns false, with errno set, if poll fails. */
static bool wait_for(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};

    while (poll(&p, 1, -1) < 0)
        if (errno != EINTR && errno != EAGAIN)
            return false;
    return true;
}

ssize_t ps_read(int fd, void *buf, size_t n)
{
    for (;;) {
        ssize_t got = read(fd, buf, n);

        if (got >= 0)
            return got;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN || !wait_for(fd, POLLIN))
            return -1;
    }
}

ssize_t ps_read_at(int fd, void *buf, size_t n, uint64_t offset)
{
    unsigned char *p = buf;
    size_t done = 0;

    while (done < n) {
        ssize_t got = pread(fd, p + done, n - done, (off_t)(offset + done));

        if (got == 0)
            break;
        if (got < 0 && errno != EINTR)
            return -1;
        done += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)done;
}

ps_result ps_write_all(int fd, const void *buf, size_t n, ps_error *err)
{
    const unsigned char *p = buf;

    while (n > 0) {
        ssize_t put = write(fd, p, n);

        if (put > 0) {
            p += put;
            n -= (size_t)put;
        } else if (put == 0) {
            /* Some devices return 0 when full.  Retrying would loop forever. */
            errno = ENOSPC;
            return ps_fail_errno(err, "cannot write");
        } else if (errno == EAGAIN) {
            if (!wait_for(fd, POLLOUT))
                return ps_fail_errno(err, "cannot wait for output");
        } else if (errno != EINTR) {
            return ps_fail_errno(err, "cannot write");
        }
    }
    return PS_OK;
}

bool ps_would_wait(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 0;
}

void ps_widen_pipe(int fd)
{
#ifdef F_SETPIPE_SZ
    int size = fcntl(fd, F_GETPIPE_SZ);

    if (size >= 0 && (size_t)size < PS_IO_BYTES)
        (void)fcntl(fd, F_SETPIPE_SZ, (int)PS_IO_BYTES);
#else
    (void)fd;
#endif
}

bool ps_wait_input(int fd, int quit)
{
    struct pollfd p[2] = {{.fd = fd, .events = POLLIN},
                          {.fd = quit, .events = POLLIN}};
    int n;

    do {
        n = poll(p, 2, -1);
    } while (n < 0 && (errno == EINTR || errno == EAGAIN));
    return n < 0 || p[1].revents == 0;
}

ps_result ps_wakeup_pipe_open(int wakeup[2], ps_error *err)
{
    bool made = pipe(wakeup) == 0;

    for (int i = 0; made && i < 2; i++) {
        int flags = fcntl(wakeup[i], F_GETFL);

        made = flags >= 0 &&
               fcntl(wakeup[i], F_SETFL, flags | O_NONBLOCK) == 0 &&
               fcntl(wakeup[i], F_SETFD, FD_CLOEXEC) == 0;
    }
    return made ? PS_OK : ps_fail_errno(err, "cannot create a pipe");
}

void ps_wake(const int wakeup[2])
{
    while (write(wakeup[1], "", 1) < 0 && errno == EINTR)
        continue;
}
