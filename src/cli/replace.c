/*
 * replace.c - a small file that is replaced again and again.
 *
 * The new file gets a name of its own, is written and synchronised, and then
 * renamed; last the folder is synchronised, which makes the new name last.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cli/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/message.h"

#define SUFFIX ".new"

/* No state is as large; what is was put there by mistake. */
#define MOST_BYTES ((uint64_t)1 << 32)

static bool failed(const replace *r)
{
    message_errno("%s", message_name(r->name));
    return false;
}

static bool open_folder(replace *r)
{
    size_t n = (size_t)(r->base - r->name);
    char *folder = malloc(n + 2);

    if (folder == NULL)
        return false;
    memcpy(folder, n == 0 ? "." : r->name, n == 0 ? 1 : n);
    folder[n == 0 ? 1 : n] = '\0';
    do {
        r->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    } while (r->folder < 0 && errno == EINTR);
    free(folder);
    return r->folder >= 0;
}

bool replace_open(replace *r, const char *name)
{
    const char *slash = strrchr(name, '/');

    *r = (replace){.name = name, .folder = -1};
    r->base = slash == NULL ? name : slash + 1;
    r->fresh = malloc(strlen(r->base) + sizeof SUFFIX);
    if (r->fresh == NULL || !open_folder(r))
        return failed(r);
    (void)strcpy(r->fresh, r->base);
    (void)strcat(r->fresh, SUFFIX);
    return true;
}

/* ---- Written ---- */

static bool write_all(int fd, const unsigned char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t part = write(fd, bytes, n);

        if (part < 0 && errno == EINTR)
            continue;
        /* Some say "full" this way. */
        if (part == 0)
            errno = ENOSPC;
        if (part <= 0)
            return false;
        bytes += part;
        n -= (size_t)part;
    }
    return true;
}

/* Both say what went wrong, also if only the close does. */
static bool finish(int fd, bool written)
{
    int why;

    while (written && fsync(fd) != 0)
        written = errno == EINTR;
    why = errno;
    if (close(fd) != 0 && written)
        return false;
    errno = why;
    return written;
}

static bool write_fresh(const replace *r, const void *bytes, size_t n)
{
    int fd;

    do {
        fd = openat(r->folder, r->fresh,
                    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY,
                    0666);
    } while (fd < 0 && errno == EINTR);
    return fd >= 0 && finish(fd, write_all(fd, bytes, n));
}

/* Some file systems cannot, and need not. */
static bool sync_folder(const replace *r)
{
    int status;

    do {
        status = fsync(r->folder);
    } while (status != 0 && errno == EINTR);
    return status == 0 || errno == EINVAL || errno == ENOTSUP;
}

bool replace_write(const replace *r, const void *bytes, size_t n)
{
    bool written = write_fresh(r, bytes, n) &&
                   renameat(r->folder, r->fresh, r->folder, r->base) == 0;

    if (!written) {
        (void)failed(r);
        (void)unlinkat(r->folder, r->fresh, 0);
        return false;
    }
    return sync_folder(r) || failed(r);
}

/* ---- Read ---- */

static bool read_all(int fd, unsigned char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t part = read(fd, bytes, n);

        if (part < 0 && errno == EINTR)
            continue;
        /* Who changes it while it is read gets it refused. */
        if (part == 0)
            errno = EIO;
        if (part <= 0)
            return false;
        bytes += part;
        n -= (size_t)part;
    }
    return true;
}

static bool read_file(int fd, unsigned char **bytes, size_t *n)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return false;
    if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > MOST_BYTES) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
        return false;
    }
    *n = (size_t)st.st_size;
    *bytes = malloc(*n + 1);
    return *bytes != NULL && read_all(fd, *bytes, *n);
}

bool replace_read(const replace *r, unsigned char **bytes, size_t *n)
{
    int fd;
    bool done;

    *bytes = NULL;
    *n = 0;
    do {
        fd = openat(r->folder, r->base,
                    O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return errno == ENOENT || failed(r);
    done = read_file(fd, bytes, n);
    if (!done) {
        (void)failed(r);
        free(*bytes);
        *bytes = NULL;
    }
    (void)close(fd);
    return done;
}

void replace_close(replace *r)
{
    if (r->folder >= 0)
        (void)close(r->folder);
    free(r->fresh);
    *r = (replace){.folder = -1};
}
