/*
 * write-log.c - a log of a program's changes to files.
 *
 * LD_PRELOAD puts this before the C library.  It passes calls on, and appends
 * each that changes a regular file or a name, or syncs either to disk, to
 * the file WRITE_LOG, in the order in which they were made:
 *
 *     kind     1 byte
 *     place    8 bytes, in native byte order
 *     inode    8 bytes
 *     n        8 bytes
 *     data     n bytes
 *
 *   'O' creates a file: data is its name, and the place the inode of its folder
 *   'W' writes data at the place
 *   'T' truncates or extends the file to the place
 *   'S' syncs the file, 'D' a folder
 *   'R' renames within a folder, the place: data is the old name, a NUL and the
 *       new one
 *   'U' unlinks: data is the name, and the place the inode of its folder
 *
 * Nothing is really synced.  With WRITE_SIGNAL=NUMBER and WRITE_SIGNAL_AT=N the
 * process gets that signal after entry N, counted from 0.
 *
 * SPDX-License-Identifier: MIT
 */

/* For RTLD_NEXT. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "preload.h"

#define HEAD_BYTES 25

static int written = -1;
static int signal_number;
static long until_signal;

/* Held over a call and its entry, so that both have the same order. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void begin(void)
{
    const char *name = getenv("WRITE_LOG");

    if (name != NULL)
        written = open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (getenv("WRITE_SIGNAL") != NULL) {
        signal_number = atoi(getenv("WRITE_SIGNAL"));
        until_signal = atol(getenv("WRITE_SIGNAL_AT"));
    }
}

/* A log with a gap would prove nothing. */
static void enter(char kind, uint64_t place, uint64_t inode, const void *data,
                  size_t n)
{
    unsigned char head[HEAD_BYTES] = {(unsigned char)kind};
    const uint64_t size = n;
    struct iovec parts[] = {{head, sizeof head}, {(void *)(uintptr_t)data, n}};

    memcpy(head + 1, &place, 8);
    memcpy(head + 9, &inode, 8);
    memcpy(head + 17, &size, 8);
    if (written >= 0 &&
        writev(written, parts, 2) != (ssize_t)(sizeof head + n))
        abort();
    if (signal_number != 0 && until_signal-- == 0)
        (void)kill(getpid(), signal_number);
}

static const char *base_of(const char *name)
{
    const char *slash = strrchr(name, '/');

    return slash == NULL ? name : slash + 1;
}

/* The inode of the folder that contains a name. */
static uint64_t folder_of(int folder, const char *name)
{
    char path[512];
    size_t n = (size_t)(base_of(name) - name);
    struct stat st;

    if (n >= sizeof path)
        abort();
    memcpy(path, name, n);
    memcpy(path + n, ".", 2);
    return fstatat(folder, path, &st, 0) == 0 ? st.st_ino : 0;
}

static bool is_regular(int fd, struct stat *st)
{
    return fstat(fd, st) == 0 && S_ISREG(st->st_mode);
}

static int open_logged(int folder, const char *name, int flags, unsigned mode)
{
    struct stat st;
    bool was_there;
    int fd;

    REAL(openat, int, int, const char *, int, ...);
    (void)pthread_mutex_lock(&lock);
    was_there = fstatat(folder, name, &st, 0) == 0;
    fd = real(folder, name, flags, mode);
    if (fd >= 0 && (flags & (O_CREAT | O_TRUNC)) != 0 && is_regular(fd, &st)) {
        if (!was_there)
            enter('O', folder_of(folder, name), st.st_ino, base_of(name),
                  strlen(base_of(name)));
        else if ((flags & O_TRUNC) != 0)
            enter('T', 0, st.st_ino, NULL, 0);
    }
    (void)pthread_mutex_unlock(&lock);
    return fd;
}

#define MODE_OF(flags, mode)                     \
    do {                                         \
        va_list args;                            \
                                                 \
        va_start(args, flags);                   \
        if (((flags) & O_CREAT) != 0)            \
            (mode) = va_arg(args, unsigned);     \
        va_end(args);                            \
    } while (0)

int open(const char *name, int flags, ...)
{
    unsigned mode = 0;

    MODE_OF(flags, mode);
    return open_logged(AT_FDCWD, name, flags, mode);
}

int openat(int folder, const char *name, int flags, ...)
{
    unsigned mode = 0;

    MODE_OF(flags, mode);
    return open_logged(folder, name, flags, mode);
}

ssize_t write(int fd, const void *buf, size_t n)
{
    struct stat st;
    ssize_t put;
    off_t at;

    REAL(write, ssize_t, int, const void *, size_t);
    if (!is_regular(fd, &st))
        return real(fd, buf, n);
    (void)pthread_mutex_lock(&lock);
    at = (fcntl(fd, F_GETFL) & O_APPEND) != 0 ? st.st_size
                                              : lseek(fd, 0, SEEK_CUR);
    put = real(fd, buf, n);
    if (put > 0)
        enter('W', (uint64_t)at, st.st_ino, buf, (size_t)put);
    (void)pthread_mutex_unlock(&lock);
    return put;
}

ssize_t pwrite(int fd, const void *buf, size_t n, off_t at)
{
    struct stat st;
    ssize_t put;

    REAL(pwrite, ssize_t, int, const void *, size_t, off_t);
    (void)pthread_mutex_lock(&lock);
    put = real(fd, buf, n, at);
    if (put > 0 && is_regular(fd, &st))
        enter('W', (uint64_t)at, st.st_ino, buf, (size_t)put);
    (void)pthread_mutex_unlock(&lock);
    return put;
}

int ftruncate(int fd, off_t size)
{
    struct stat st;
    int status;

    REAL(ftruncate, int, int, off_t);
    (void)pthread_mutex_lock(&lock);
    status = real(fd, size);
    if (status == 0 && is_regular(fd, &st))
        enter('T', (uint64_t)size, st.st_ino, NULL, 0);
    (void)pthread_mutex_unlock(&lock);
    return status;
}

static int sync_logged(int fd)
{
    struct stat st;

    (void)pthread_mutex_lock(&lock);
    if (fstat(fd, &st) == 0)
        enter(S_ISDIR(st.st_mode) ? 'D' : 'S', 0, st.st_ino, NULL, 0);
    (void)pthread_mutex_unlock(&lock);
    return 0;
}

int fsync(int fd)
{
    return sync_logged(fd);
}

int fdatasync(int fd)
{
    return sync_logged(fd);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    char names[512];
    size_t n = strlen(base_of(from)) + 1;
    size_t m = strlen(base_of(to));
    int status;

    REAL(renameat, int, int, const char *, int, const char *);
    if (n + m > sizeof names)
        abort();
    (void)pthread_mutex_lock(&lock);
    status = real(from_folder, from, to_folder, to);
    memcpy(names, base_of(from), n);
    memcpy(names + n, base_of(to), m);
    if (status == 0)
        enter('R', folder_of(from_folder, from), 0, names, n + m);
    (void)pthread_mutex_unlock(&lock);
    return status;
}

int rename(const char *from, const char *to)
{
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int unlinkat(int folder, const char *name, int flags)
{
    int status;

    REAL(unlinkat, int, int, const char *, int);
    (void)pthread_mutex_lock(&lock);
    status = real(folder, name, flags);
    if (status == 0)
        enter('U', folder_of(folder, name), 0, base_of(name),
              strlen(base_of(name)));
    (void)pthread_mutex_unlock(&lock);
    return status;
}

int unlink(const char *name)
{
    return unlinkat(AT_FDCWD, name, 0);
}
