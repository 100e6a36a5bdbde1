/*
 * atomic_file.c - a small file that is replaced again and again.
 *
 * The new file gets a name of its own, is written and synchronised, and then
 * renamed; last the folder is synchronised, which makes the new name last.
 *
 * Who has the lock of the new file owns the old one, too.  It exists from the
 * beginning, empty, and after each renaming there is another.  Until then the
 * lock goes with the one that was renamed; so who wants to begin needs the
 * new file, and then to find the old one without a lock.
 *
 * A lock does not keep other programs from the new file, so whether it still
 * is what was made here is looked at before it is written, renamed or removed.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cli/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/lock.h"
#include "cli/message.h"

#define MAX_NAPS 1000

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

/* ---- The next one ---- */

static bool next_failed(const replace *r)
{
    if (errno == EAGAIN)
        message_error("%s: another job keeps its state there",
                      message_name(r->name));
    else
        message_errno("%s", message_name(r->next_name));
    return false;
}

static bool is_in_the_way(const replace *r)
{
    message_error("%s: is in the way of the file that is to replace %s",
                  message_name(r->next_name), message_name(r->name));
    return false;
}

/* It may be that of another user. */
static bool is_out_of_reach(const replace *r)
{
    message_errno("%s: is in the way of the file that is to replace %s, and "
                  "cannot be opened",
                  message_name(r->next_name), message_name(r->name));
    return false;
}

static bool next_was_changed(const replace *r)
{
    message_error("%s: another program changed or removed it, so %s was not "
                  "replaced",
                  message_name(r->next_name), message_name(r->name));
    return false;
}

/* Whether the open file still has its name; false with errno. */
static bool has_name(const replace *r, const struct stat *open)
{
    struct stat named;

    if (fstatat(r->folder, r->next_base, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        named.st_dev == open->st_dev && named.st_ino == open->st_ino)
        return true;
    errno = EAGAIN;
    return false;
}

/* Whether it has its name, and just the bytes that were written to it. */
static bool is_unchanged(const replace *r)
{
    struct stat st;

    return fstat(r->next, &st) == 0 && (uint64_t)st.st_size == r->next_size &&
           has_name(r, &st);
}

static int open_next(const replace *r, int create)
{
    int fd;

    do {
        fd = openat(r->folder, r->next_base,
                    O_RDWR | create | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK |
                        O_NOCTTY,
                    0666);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

/* Locks it, and makes sure that it still has its name. */
static bool lock_next(const replace *r, int fd)
{
    struct stat open;

    return lock_take(fd) && fstat(fd, &open) == 0 && has_name(r, &open);
}

/* How many of the first bytes there are, or -1. */
static ssize_t read_first(int fd, unsigned char first[REPLACE_FIRST])
{
    ssize_t n;

    do {
        n = pread(fd, first, REPLACE_FIRST, 0);
    } while (n < 0 && errno == EINTR);
    return n;
}

/*
 * False, after a message, for all but what a killed process left: it has one
 * name, and is empty or begins as ours do.
 */
static bool check_left_over(const replace *r, int fd)
{
    unsigned char first[REPLACE_FIRST];
    struct stat st;
    ssize_t n = read_first(fd, first);

    if (n < 0 || fstat(fd, &st) != 0)
        return next_failed(r);
    if (S_ISREG(st.st_mode) && st.st_nlink == 1 &&
        (n == 0 || r->is_ours(first, (size_t)n)))
        return true;
    return is_in_the_way(r);
}

/* What is looked at is not opened if that might do something. */
static bool remove_left_over(const replace *r)
{
    struct stat st;
    bool done;
    int fd;

    if (fstatat(r->folder, r->next_base, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT || next_failed(r);
    if (!S_ISREG(st.st_mode))
        return is_in_the_way(r);
    fd = open_next(r, 0);
    if (fd < 0)
        return errno == ENOENT || is_out_of_reach(r);
    if (!lock_next(r, fd))
        done = next_failed(r);
    else
        done = check_left_over(r, fd) &&
               (unlinkat(r->folder, r->next_base, 0) == 0 || next_failed(r));
    (void)close(fd);
    return done;
}

static bool begin_next(replace *r)
{
    int fd = open_next(r, O_CREAT | O_EXCL);

    if (fd < 0 && errno == EEXIST) {
        if (!remove_left_over(r))
            return false;
        fd = open_next(r, O_CREAT | O_EXCL);
        /* Someone else was faster. */
        if (fd < 0 && errno == EEXIST)
            errno = EAGAIN;
    }
    if (fd >= 0 && lock_next(r, fd)) {
        r->next = fd;
        return true;
    }
    (void)next_failed(r);
    if (fd >= 0)
        (void)close(fd);
    return false;
}

/* Who has just renamed it has the lock still, and is about to go on. */
static bool check_current(const replace *r)
{
    bool free_to_take = true;
    int fd;

    do {
        fd = openat(r->folder, r->base,
                    O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    } while (fd < 0 && errno == EINTR);
    /* That it cannot be opened is told when it is read or replaced. */
    if (fd < 0)
        return true;
    if (!lock_take(fd) && errno == EAGAIN)
        free_to_take = next_failed(r);
    (void)close(fd);
    return free_to_take;
}

static void close_kept(int fd)
{
    int why = errno;

    (void)close(fd);
    errno = why;
}

/*
 * Begins another one.  Whoever looks on at that moment may have it for an
 * instant, and then finds that the file is not free.
 */
static bool continue_next(replace *r)
{
    const struct timespec nap = {.tv_nsec = 1000000};

    for (int i = 0; i < MAX_NAPS; i++) {
        int fd = open_next(r, O_CREAT | O_EXCL);

        if (fd >= 0 && lock_next(r, fd)) {
            r->next = fd;
            return true;
        }
        if (fd >= 0)
            close_kept(fd);
        if (errno != EEXIST && errno != EAGAIN)
            break;
        (void)nanosleep(&nap, NULL);
        errno = EAGAIN;
    }
    return next_failed(r);
}

bool atomic_file_open(replace *r, const char *name, atomic_file_test *is_ours)
{
    const char *slash = strrchr(name, '/');

    *r = (replace){.name = name, .is_ours = is_ours, .folder = -1, .next = -1};
    r->base = slash == NULL ? name : slash + 1;
    r->next_name = malloc(strlen(name) + sizeof REPLACE_SUFFIX);
    if (r->next_name == NULL || !open_folder(r))
        return failed(r);
    if (*r->base == '\0') {
        errno = EISDIR;
        return failed(r);
    }
    (void)strcpy(r->next_name, name);
    (void)strcat(r->next_name, REPLACE_SUFFIX);
    r->next_base = r->next_name + (r->base - name);
    return begin_next(r) && check_current(r);
}

/* ---- Written ---- */

static bool write_next(replace *r, const unsigned char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t part = write(r->next, bytes, n);

        if (part < 0 && errno == EINTR)
            continue;
        /* Some say "full" this way. */
        if (part == 0)
            errno = ENOSPC;
        if (part <= 0)
            return false;
        r->next_size += (uint64_t)part;
        bytes += part;
        n -= (size_t)part;
    }
    return true;
}

static bool sync_file(int fd)
{
    int status;

    do {
        status = fsync(fd);
    } while (status != 0 && errno == EINTR);
    return status == 0;
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

bool atomic_file_write(replace *r, const void *bytes, size_t n)
{
    int fd = r->next;
    bool begun;

    if (!is_unchanged(r))
        return next_was_changed(r);
    if (!write_next(r, bytes, n) || !sync_file(fd))
        return failed(r);
    if (!is_unchanged(r))
        return next_was_changed(r);
    if (renameat(r->folder, r->next_base, r->folder, r->base) != 0)
        return failed(r);
    r->next = -1;
    r->next_size = 0;
    begun = continue_next(r);
    if (close(fd) != 0 || !sync_folder(r))
        return failed(r);
    return begun;
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

static bool read_file(const replace *r, int fd, uint64_t max,
                      unsigned char **bytes, size_t *n)
{
    unsigned char first[REPLACE_FIRST];
    struct stat st;
    uint64_t size;
    ssize_t part;

    if (fstat(fd, &st) != 0)
        return false;
    if (!S_ISREG(st.st_mode)) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
        return false;
    }
    part = read_first(fd, first);
    if (part < 0)
        return false;
    size = (uint64_t)st.st_size;
    if (size > (uint64_t)part && !r->is_ours(first, (size_t)part))
        size = (uint64_t)part;
    if (size > max || size >= SIZE_MAX) {
        errno = EFBIG;
        return false;
    }
    *n = (size_t)size;
    *bytes = malloc(*n + 1);
    return *bytes != NULL && read_all(fd, *bytes, *n);
}

bool atomic_file_read(const replace *r, uint64_t max, unsigned char **bytes,
                      size_t *n)
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
    done = read_file(r, fd, max, bytes, n);
    if (!done) {
        (void)failed(r);
        free(*bytes);
        *bytes = NULL;
    }
    (void)close(fd);
    return done;
}

void atomic_file_close(replace *r)
{
    if (r->next >= 0) {
        if (is_unchanged(r))
            (void)unlinkat(r->folder, r->next_base, 0);
        (void)close(r->next);
    }
    if (r->folder >= 0)
        (void)close(r->folder);
    free(r->next_name);
    *r = (replace){.folder = -1, .next = -1};
}
