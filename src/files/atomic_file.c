/*
 * atomic_file.c - a small file that is replaced atomically, many times.
 *
 * New contents are written to a second file, the next file, which is synced and
 * renamed over the old one.  Then the directory is synced, so that the rename
 * survives a crash.
 *
 * The lock on the next file protects both: its holder also owns the old file.
 * For this reason an empty next file is created at the start, and again after
 * each rename.  Between the rename and the creation of another next file the
 * lock is on the renamed file.  A process that starts therefore has to lock the
 * next file and then find the old one unlocked.
 *
 * Other programs may ignore the lock.  Before the next file is written, renamed
 * or removed, its identity is compared with that of the file created here.
 *
 * SPDX-License-Identifier: MIT
 */

#include "files/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/message.h"
#include "common/bytes.h"
#include "files/files.h"

#define NAPS_MAX 1000
#define NAP_NS 1000000

/* Flags for opening the next file. */
#define NEXT_FLAGS (O_RDWR | O_NOFOLLOW | O_NONBLOCK)

/*
 * Atomic write unit of a disk, in bytes.  After a power failure a sector may
 * read as zeros.
 */
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

/* True if the open file still has its name; otherwise false with errno set. */
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

/* True if the next file has its name and exactly the bytes written to it. */
static bool is_unchanged(const atomic_file *f)
{
    struct stat st;

    return has_name(f, f->next, &st) && (uint64_t)st.st_size == f->next_size;
}

/* Creates and locks the next file if its name is free; false with errno set. */
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

/* Reads up to `n` bytes at offset 0.  Returns the number read, or -1. */
static ssize_t read_first(int fd, unsigned char *bytes, size_t n)
{
    ssize_t got;

    do {
        got = pread(fd, bytes, n, 0);
    } while (got < 0 && errno == EINTR);
    return got;
}

/*
 * Removes a next file left by a killed process or a power failure: a regular
 * file with one link that is empty, starts with the magic, or has a first
 * sector of zeros.  Prints a message and returns false for any other file.
 */
static bool remove_left_over(const atomic_file *f)
{
    unsigned char first[SECTOR_BYTES];
    struct stat st;
    ssize_t n;
    bool done;
    int fd;

    /* Opening something else, such as a device, could have side effects. */
    if (fstatat(f->folder, f->next_base, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT || next_failed(f);
    if (!S_ISREG(st.st_mode))
        return next_is_in_the_way(f);

    fd = files_openat(f->folder, f->next_base, NEXT_FLAGS);
    if (fd < 0 && errno == ENOENT)
        return true;
    if (fd < 0) {
        /* It may have been created by another user. */
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

/* Creates and locks the first next file. */
static bool begin_next(atomic_file *f)
{
    bool begun = create_next(f);

    if (!begun && errno == EEXIST) {
        if (!remove_left_over(f))
            return false;
        begun = create_next(f);
        /* Another process created it first. */
        if (!begun && errno == EEXIST)
            errno = EAGAIN;
    }
    return begun || next_failed(f);
}

/*
 * Creates and locks another next file after a rename.  A process that starts
 * may hold it briefly, until it finds the renamed file locked, so retry.
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
     * If the file is locked, another process has just renamed it and is still
     * running.  Any other error is reported when the file is read or replaced.
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
        /* Some devices report that they are full this way. */
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
    /* Some file systems cannot sync a directory and do not need it. */
    if (!sync_fd(f->folder) && errno != EINVAL && errno != ENOTSUP)
        return failed(f);
    return begun;
}

/* On failure, returns false with errno set. */
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
        /* The file shrank while being read. */
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
