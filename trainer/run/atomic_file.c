/*
 * atomic_file.c - a file that takes the place of an older one as soon as it is
 * whole.
 *
 * It is always made by us: so nothing is lost that others have under its
 * name, or that a link there leads to.  While it is written we have a lock on
 * it, so that another run does not take it for one that a killed run left.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/fail.h"

char *fresh_name(const char *name)
{
    size_t bytes = strlen(name) + sizeof FRESH_SUFFIX;
    char *beside = malloc(bytes);

    if (beside != NULL)
        (void)snprintf(beside, bytes, "%s%s", name, FRESH_SUFFIX);
    return beside;
}

static ps_result prepare(fresh *f, const char *name, ps_error *err)
{
    *f = (fresh){.name = name, .beside = fresh_name(name), .fd = -1};
    if (f->beside == NULL)
        return fail(err, PS_ERR_MEMORY, "no memory for its name");
    return PS_OK;
}

static void forget(fresh *f)
{
    if (f->fd >= 0)
        (void)close(f->fd);
    free(f->beside);
    *f = (fresh){.fd = -1};
}

static ps_result in_the_way(const fresh *f, ps_error *err)
{
    return fail(err, PS_ERR_IO, "%s is in the way", f->beside);
}

static bool open_beside(fresh *f, int create)
{
    do {
        f->fd = open(f->beside,
                     O_RDWR | create | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY |
                         O_CLOEXEC,
                     0666);
    } while (f->fd < 0 && errno == EINTR);
    return f->fd >= 0;
}

/* Some file systems have no locks. */
static bool lock(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(fd, F_SETLK, &whole) == 0 ||
           (errno != EAGAIN && errno != EACCES);
}

/* The process with the lock may rename or remove the file. */
static ps_result lock_beside(const fresh *f, ps_error *err)
{
    struct stat open, named;

    if (lock(f->fd) && fstat(f->fd, &open) == 0 &&
        lstat(f->beside, &named) == 0 && open.st_dev == named.st_dev &&
        open.st_ino == named.st_ino)
        return PS_OK;
    return fail(err, PS_ERR_IO, "another run is writing it");
}

/* ---- Trying ---- */

static bool is_ours(int fd, const unsigned char magic[FRESH_MAGIC])
{
    unsigned char first[FRESH_MAGIC];
    ssize_t n;

    do {
        n = pread(fd, first, sizeof first, 0);
    } while (n < 0 && errno == EINTR);
    return n >= 0 && memcmp(first, magic, (size_t)n) == 0;
}

static ps_result remove_beside(const fresh *f,
                               const unsigned char magic[FRESH_MAGIC],
                               ps_error *err)
{
    ps_result r = lock_beside(f, err);

    if (r == PS_OK && !is_ours(f->fd, magic))
        return in_the_way(f, err);
    if (r == PS_OK && unlink(f->beside) != 0)
        return fail_errno(err);
    return r;
}

/* What might do something when it is opened is only looked at. */
static ps_result remove_left_over(fresh *f,
                                  const unsigned char magic[FRESH_MAGIC],
                                  ps_error *err)
{
    struct stat st;
    ps_result r;

    if (lstat(f->beside, &st) != 0)
        return errno == ENOENT ? PS_OK : fail_errno(err);
    if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
        return in_the_way(f, err);
    if (!open_beside(f, 0))
        return errno == ENOENT ? PS_OK : in_the_way(f, err);
    r = remove_beside(f, magic, err);
    (void)close(f->fd);
    f->fd = -1;
    return r;
}

static ps_result make(fresh *f, ps_error *err)
{
    if (open_beside(f, O_CREAT | O_EXCL))
        return lock_beside(f, err);
    return errno == EEXIST ? in_the_way(f, err) : fail_errno(err);
}

ps_result fresh_try(const char *name, const unsigned char magic[FRESH_MAGIC],
                    ps_error *err)
{
    fresh f;
    ps_result r = prepare(&f, name, err);

    if (r == PS_OK)
        r = remove_left_over(&f, magic, err);
    if (r == PS_OK)
        r = make(&f, err);
    if (r == PS_OK && unlink(f.beside) != 0)
        r = fail_errno(err);
    forget(&f);
    return r;
}

/* ---- Writing ---- */

ps_result fresh_open(fresh *f, const char *name, ps_error *err)
{
    ps_result r = prepare(f, name, err);

    if (r == PS_OK)
        r = make(f, err);
    if (r != PS_OK)
        forget(f);
    return r;
}

static bool sync_file(int fd)
{
    int status;

    do {
        status = fsync(fd);
    } while (status != 0 && errno == EINTR);
    return status == 0;
}

/* A name lasts when its folder does; some file systems need not be told. */
static ps_result sync_folder(char *name, ps_error *err)
{
    char *slash = strrchr(name, '/');
    ps_result r = PS_OK;
    int fd;

    if (slash != NULL)
        slash[slash == name] = '\0';
    fd = open(slash == NULL ? "." : name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || (!sync_file(fd) && errno != EINVAL && errno != ENOTSUP))
        r = fail_errno(err);
    if (fd >= 0)
        (void)close(fd);
    return r;
}

ps_result fresh_close(fresh *f, ps_result r, ps_error *err)
{
    if (r == PS_OK &&
        (!sync_file(f->fd) || rename(f->beside, f->name) != 0))
        r = fail_errno(err);
    if (r == PS_OK)
        r = sync_folder(f->beside, err);
    else
        (void)unlink(f->beside);
    forget(f);
    return r;
}
