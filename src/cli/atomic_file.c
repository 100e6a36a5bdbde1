/*
 * atomic_file.c - a small file that is replaced again and again.
 *
 * The new bytes go to a file of another name, the next file.  It is written,
 * synchronised and renamed over the old one; then the folder is synchronised,
 * which makes the new name last.
 *
 * The lock of the next file stands for both: the process that has it owns the
 * old file, too.  So the next file exists, empty, from the beginning, and
 * another is created after each renaming.  In between, the lock is on the file
 * that was renamed; a process that wants to begin therefore has to get the
 * next file, and then to find the old one without a lock.
 *
 * A lock does not keep other programs from the next file.  Before it is
 * written, renamed or removed, a check makes sure that it still is the one
 * that was created here.
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

#include "cli/files.h"
#include "cli/message.h"
#include "common/bytes.h"

#define NAPS_MAX 1000
#define NAP_NS 1000000

/* How the next file is opened. */
#define NEXT_FLAGS (O_RDWR | O_NOFOLLOW | O_NONBLOCK)

/* What a disk writes at once.  A power cut may leave zeros in its place. */
#define SECTOR_BYTES 512

static bool failed(const atomic_file *f)
{
    message_errno("%s", message_name(f->name));
    return false;
}

/* ---------------------------------------------------------------------
 * The next file
 */

static bool next_failed(const atomic_file *f)
{
    if (errno == EAGAIN)
        message_error("%s: another job keeps its state there",
                      message_name(f->name));
    else
        message_errno("%s", message_name(f->next_name));
    return false;
}

static bool next_is_in_the_way(const atomic_file *f)
{
    message_error("%s: is in the way of the file that is to replace %s",
                  message_name(f->next_name), message_name(f->name));
    return false;
}

static bool next_was_changed(const atomic_file *f)
{
    message_error("%s: another program changed or removed it, so %s was not "
                  "replaced",
                  message_name(f->next_name), message_name(f->name));
    return false;
}

/* Whether the open file still has its name; false with errno. */
static bool has_name(const atomic_file *f, int fd, struct stat *st)
{
    struct stat named;

    if (fstat(fd, st) != 0)
        return false;
    if (fstatat(f->folder, f->next_base, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        files_are_one(&named, st))
        return true;
    errno = EAGAIN;
    return false;
}

/* Whether it has its name, and just the bytes that were written to it. */
static bool is_unchanged(const atomic_file *f)
{
    struct stat st;

    return has_name(f, f->next, &st) && (uint64_t)st.st_size == f->next_size;
}

/* Creates and locks it, if there is no file of its name; false with errno. */
static bool create_next(atomic_file *f)
{
    struct stat st;
    int why;
    int fd = files_openat(f->folder, f->next_base,
                          NEXT_FLAGS | O_CREAT | O_EXCL);

    if (fd < 0)
        return false;
    if (files_lock(fd) && has_name(f, fd, &st)) {
        f->next = fd;
        return true;
    }
    why = errno;
    (void)close(fd);
    errno = why;
    return false;
}

/* How many of the first `n` bytes there are, or -1. */
static ssize_t read_first(int fd, unsigned char *bytes, size_t n)
{
    ssize_t got;

    do {
        got = pread(fd, bytes, n, 0);
    } while (got < 0 && errno == EINTR);
    return got;
}

/*
 * Removes what a killed process or a power cut left: a regular file of one
 * name, empty or beginning as ours do, or with a sector of zeros.  False after
 * a message, for anything else.
 */
static bool remove_left_over(const atomic_file *f)
{
    unsigned char first[SECTOR_BYTES];
    struct stat st;
    ssize_t n;
    bool done;
    int fd;

    /* To open what is no regular file might have an effect. */
    if (fstatat(f->folder, f->next_base, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT || next_failed(f);
    if (!S_ISREG(st.st_mode))
        return next_is_in_the_way(f);

    fd = files_openat(f->folder, f->next_base, NEXT_FLAGS);
    if (fd < 0 && errno == ENOENT)
        return true;
    if (fd < 0) {
        /* It may be that of another user. */
        message_errno("%s: is in the way of the file that is to replace %s, "
                      "and cannot be opened",
                      message_name(f->next_name), message_name(f->name));
        return false;
    }
    n = files_lock(fd) && has_name(f, fd, &st)
            ? read_first(fd, first, sizeof first)
            : -1;
    if (n < 0 || fstat(fd, &st) != 0)
        done = next_failed(f);
    else if (!S_ISREG(st.st_mode) || st.st_nlink != 1 ||
             !(all_zero(first, (size_t)n) ||
               f->is_ours(first, n < ATOMIC_FILE_MAGIC ? (size_t)n
                                                       : ATOMIC_FILE_MAGIC)))
        done = next_is_in_the_way(f);
    else
        done = unlinkat(f->folder, f->next_base, 0) == 0 || next_failed(f);
    (void)close(fd);
    return done;
}

/* Creates and locks the first one. */
static bool begin_next(atomic_file *f)
{
    bool begun = create_next(f);

    if (!begun && errno == EEXIST) {
        if (!remove_left_over(f))
            return false;
        begun = create_next(f);
        /* Someone else was faster. */
        if (!begun && errno == EEXIST)
            errno = EAGAIN;
    }
    return begun || next_failed(f);
}

/*
 * Creates and locks another after a renaming.  A process that wants to begin
 * may hold it for an instant, until it finds that the file is not free.
 */
static bool continue_next(atomic_file *f)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};

    for (int i = 0; i < NAPS_MAX; i++) {
        if (create_next(f))
            return true;
        if (errno != EEXIST && errno != EAGAIN)
            break;
        (void)nanosleep(&nap, NULL);
        errno = EAGAIN;
    }
    return next_failed(f);
}

/* ---------------------------------------------------------------------
 * The calls
 */

bool atomic_file_open(atomic_file *f, const char *name,
                      atomic_file_test *is_ours)
{
    char folder[FILES_MAX_NAME];
    char place[FILES_MAX_NAME];
    bool is_free = true;
    size_t n;
    int fd;

    *f = (atomic_file){
        .name = name, .is_ours = is_ours, .folder = -1, .next = -1};
    if (!files_follow(name, place))
        return failed(f);
    n = (size_t)(files_split(place, folder) - place);
    f->path = malloc(strlen(place) + 1);
    f->next_name = malloc(strlen(place) + sizeof ATOMIC_FILE_SUFFIX);
    if (f->path == NULL || f->next_name == NULL)
        return failed(f);
    (void)strcpy(f->path, place);
    f->base = f->path + n;
    (void)strcpy(f->next_name, place);
    (void)strcat(f->next_name, ATOMIC_FILE_SUFFIX);
    f->next_base = f->next_name + n;

    f->folder = files_openat(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY);
    if (f->folder < 0)
        return failed(f);
    if (*f->base == '\0') {
        errno = EISDIR;
        return failed(f);
    }
    if (!begin_next(f))
        return false;

    /*
     * Has a process just renamed it, and goes on?  Reading or replacing the
     * file will tell why it cannot be opened.
     */
    fd = files_openat(f->folder, f->base, O_RDWR | O_NONBLOCK);
    if (fd >= 0 && !files_lock(fd) && errno == EAGAIN)
        is_free = next_failed(f);
    if (fd >= 0)
        (void)close(fd);
    return is_free;
}

static bool sync_fd(int fd)
{
    int status;

    do {
        status = fsync(fd);
    } while (status != 0 && errno == EINTR);
    return status == 0;
}

bool atomic_file_write(atomic_file *f, const void *bytes, size_t n)
{
    int fd = f->next;
    bool begun;

    if (!is_unchanged(f))
        return next_was_changed(f);
    for (size_t done = 0; done < n;) {
        ssize_t part = write(fd, (const char *)bytes + done, n - done);

        if (part < 0 && errno == EINTR)
            continue;
        /* Some say "full" this way. */
        if (part == 0)
            errno = ENOSPC;
        if (part <= 0)
            return failed(f);
        f->next_size += (uint64_t)part;
        done += (size_t)part;
    }
    if (!sync_fd(fd))
        return failed(f);
    if (!is_unchanged(f))
        return next_was_changed(f);
    if (renameat(f->folder, f->next_base, f->folder, f->base) != 0)
        return failed(f);

    f->next = -1;
    f->next_size = 0;
    begun = continue_next(f);
    if (close(fd) != 0)
        return failed(f);
    /* Some file systems cannot synchronise a folder, and need not. */
    if (!sync_fd(f->folder) && errno != EINVAL && errno != ENOTSUP)
        return failed(f);
    return begun;
}

/* False with errno. */
static bool read_file(const atomic_file *f, int fd, uint64_t max,
                      unsigned char **bytes, size_t *n)
{
    unsigned char magic[ATOMIC_FILE_MAGIC];
    struct stat st;
    uint64_t size;
    ssize_t part;

    if (fstat(fd, &st) != 0)
        return false;
    if (!S_ISREG(st.st_mode)) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
        return false;
    }
    part = read_first(fd, magic, sizeof magic);
    if (part < 0)
        return false;
    size = (uint64_t)st.st_size;
    if (size > (uint64_t)part && !f->is_ours(magic, (size_t)part))
        size = (uint64_t)part;
    if (size > max || size >= SIZE_MAX) {
        errno = EFBIG;
        return false;
    }

    *n = (size_t)size;
    *bytes = malloc(*n + 1);
    if (*bytes == NULL)
        return false;
    for (size_t done = 0; done < *n; done += (size_t)part) {
        do {
            part = read(fd, *bytes + done, *n - done);
        } while (part < 0 && errno == EINTR);
        /* A file that shrinks while it is read is refused. */
        if (part == 0)
            errno = EIO;
        if (part <= 0)
            return false;
    }
    return true;
}

bool atomic_file_read(const atomic_file *f, uint64_t max,
                      unsigned char **bytes, size_t *n)
{
    int fd = files_openat(f->folder, f->base, O_RDONLY | O_NONBLOCK);
    bool done;

    *bytes = NULL;
    *n = 0;
    if (fd < 0)
        return errno == ENOENT || failed(f);
    done = read_file(f, fd, max, bytes, n);
    if (!done) {
        (void)failed(f);
        free(*bytes);
        *bytes = NULL;
    }
    (void)close(fd);
    return done;
}

void atomic_file_close(atomic_file *f)
{
    if (f->next >= 0) {
        if (is_unchanged(f))
            (void)unlinkat(f->folder, f->next_base, 0);
        (void)close(f->next);
    }
    if (f->folder >= 0)
        (void)close(f->folder);
    free(f->path);
    free(f->next_name);
    *f = (atomic_file){.folder = -1, .next = -1};
}
