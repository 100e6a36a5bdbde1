/*
 * atomic_file.c - a small file that is replaced atomically, many times.
 *
 * New contents are written to a second file, the next file, which is synced and
 * renamed over the old one.  Then the directory is synced, so that the rename
 * survives a crash.
 *
 * The lock on the next file protects both files.  For this reason an empty next
 * file is created at the start, and again after each rename.  Between a rename
 * and the creation of another next file, the lock is on the renamed file.  A
 * process that starts therefore has to lock the next file and then check that
 * the old file is not locked.
 *
 * Other programs may ignore the lock.  Before the next file is written, renamed
 * or removed, its identity is compared with the identity of the file created
 * here.
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
#include "files/files.h"

#define NAPS_MAX 1000
#define NAP_NS 1000000

static bool failed(const atomic_file *f)
{
    message_errno("%s", message_name(f->name));
    return false;
}

/* ---------------------------------------------------------------------
 * The next file
 */

/* Returns true if the next file was created; otherwise prints why not. */
static bool check_created(const atomic_file *f, temp_file_result r)
{
    const char *why;

    switch (r) {
    case TEMP_FILE_OK:
        return true;
    case TEMP_FILE_LOCKED:
        message_error("%s: locked: another job is saving its state here",
                      message_name(f->name));
        return false;
    case TEMP_FILE_ERRNO:
        message_errno("%s", message_name(f->next_name));
        return false;
    case TEMP_FILE_UNOPENED:
        /* Another user may have created it. */
        why = strerror(errno);
        message_error("%s: needed as the temporary file of %s, but exists and "
                      "cannot be opened: %s; remove it",
                      message_name(f->next_name), message_name(f->name), why);
        return false;
    default:
        message_error("%s: needed as the temporary file of %s, but exists and "
                      "is not a temporary file: rename or remove it",
                      message_name(f->next_name), message_name(f->name));
        return false;
    }
}

/* True if no other program has renamed or resized the next file. */
static bool is_as_written(const atomic_file *f)
{
    struct stat st;

    return temp_file_has_name(&f->next) && fstat(f->next.fd, &st) == 0 &&
           (uint64_t)st.st_size == f->next_size;
}

/* Like is_as_written, but prints a message if false. */
static bool check_next(const atomic_file *f)
{
    if (is_as_written(f))
        return true;
    message_error("%s: changed or removed by another program, so %s was not "
                  "updated",
                  message_name(f->next_name), message_name(f->name));
    return false;
}

/*
 * Creates and locks another next file after a rename.  Another process that
 * starts may hold the name briefly, until it finds that the renamed file is
 * locked, so retry.
 */
static bool continue_next(atomic_file *f)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};
    temp_file_result r = TEMP_FILE_LOCKED;

    f->next_size = 0;
    for (int i = 0; i < NAPS_MAX && r == TEMP_FILE_LOCKED; i++) {
        if (i > 0)
            (void)nanosleep(&nap, NULL);
        r = temp_file_create_new(&f->next);
        if (r == TEMP_FILE_EXISTS)
            r = TEMP_FILE_LOCKED;
    }
    return check_created(f, r);
}

/* ---------------------------------------------------------------------
 * The calls
 */

/* Sets the names of the file and the next file, and opens the directory. */
static bool open_folder(atomic_file *f, const char *name)
{
    char folder[FILES_MAX_NAME];
    char path[FILES_MAX_NAME];
    size_t n;

    if (!files_follow(name, path))
        return failed(f);
    n = (size_t)(files_split(path, folder) - path);
    f->path = files_join(path, strlen(path), "");
    f->next_name = files_join(path, strlen(path), ATOMIC_FILE_SUFFIX);
    if (f->path == NULL || f->next_name == NULL)
        return failed(f);
    f->base = f->path + n;
    f->folder = files_openat(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY);
    if (f->folder >= 0 && *f->base == '\0')
        errno = EISDIR;
    if (f->folder < 0 || *f->base == '\0')
        return failed(f);
    f->next.folder = f->folder;
    f->next.name = f->next_name + n;
    return true;
}

bool atomic_file_open(atomic_file *f, const char *name, const char *magic)
{
    bool is_free = true;
    int fd;

    *f = (atomic_file)ATOMIC_FILE_CLOSED;
    f->name = name;
    f->next.magic = magic;
    if (!open_folder(f, name) || !check_created(f, temp_file_create(&f->next)))
        return false;
    /*
     * If the old file is locked, another process has just renamed it and is
     * still running.  Any other error is reported when the file is read or
     * replaced.
     */
    fd = files_openat(f->folder, f->base, O_RDWR | O_NONBLOCK);
    if (fd >= 0 && !files_lock(fd) && errno == EAGAIN)
        is_free = check_created(f, TEMP_FILE_LOCKED);
    if (fd >= 0)
        (void)close(fd);
    return is_free;
}

bool atomic_file_write(atomic_file *f, const void *bytes, size_t n)
{
    const int fd = f->next.fd;
    bool written;
    bool begun;

    if (!check_next(f))
        return false;
    written = files_write(fd, bytes, n);
    f->next_size = (uint64_t)lseek(fd, 0, SEEK_CUR);
    if (!written || !files_fsync(fd))
        return failed(f);
    if (!check_next(f))
        return false;
    if (renameat(f->folder, f->next.name, f->folder, f->base) != 0)
        return failed(f);

    begun = continue_next(f);
    if (close(fd) != 0 || !files_sync_folder(f->folder))
        return failed(f);
    return begun;
}

/* On failure, returns false with errno set. */
static bool read_file(const atomic_file *f, int fd, uint64_t max,
                      unsigned char **bytes, size_t *n)
{
    unsigned char magic[TEMP_FILE_MAGIC];
    struct stat st;
    uint64_t size;
    ssize_t part;

    if (fstat(fd, &st) != 0)
        return false;
    if (!S_ISREG(st.st_mode)) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
        return false;
    }
    size = (uint64_t)st.st_size;
    do {
        part = pread(fd, magic, sizeof magic, 0);
    } while (part < 0 && errno == EINTR);
    if (part < 0)
        return false;
    if (size > (uint64_t)part &&
        memcmp(magic, f->next.magic, (size_t)part) != 0)
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
    if (f->next.fd >= 0 && is_as_written(f))
        (void)temp_file_discard(&f->next);
    temp_file_close(&f->next);
    if (f->folder >= 0)
        (void)close(f->folder);
    free(f->path);
    free(f->next_name);
    *f = (atomic_file)ATOMIC_FILE_CLOSED;
}
