/*
 * temp_file.c - a file under a temporary name that only this process writes.
 *
 * SPDX-License-Identifier: MIT
 */

#include "files/temp_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bytes.h"
#include "files/files.h"

#define OPEN_FLAGS (O_RDWR | O_NOFOLLOW | O_NONBLOCK)

/*
 * Unit that a disk writes atomically, in bytes.  After a power failure a sector
 * may contain zeros.
 */
#define SECTOR_BYTES 512

void temp_file_close(temp_file *t)
{
    const int why = errno;

    if (t->fd >= 0)
        (void)close(t->fd);
    t->fd = -1;
    errno = why;
}

bool temp_file_has_name(const temp_file *t)
{
    struct stat st;

    return fstatat(t->folder, t->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           st.st_dev == t->device && st.st_ino == t->inode;
}

/* Locks the open file and notes its identity. */
static temp_file_result claim(temp_file *t)
{
    struct stat st;

    if (fstat(t->fd, &st) != 0)
        return TEMP_FILE_ERRNO;
    t->device = st.st_dev;
    t->inode = st.st_ino;
    if (!files_lock(t->fd))
        return errno == EAGAIN ? TEMP_FILE_LOCKED : TEMP_FILE_ERRNO;
    /* The previous owner may have renamed or removed it before unlocking it. */
    return temp_file_has_name(t) ? TEMP_FILE_OK : TEMP_FILE_LOCKED;
}

temp_file_result temp_file_create_new(temp_file *t)
{
    temp_file_result r;

    t->fd = files_openat(t->folder, t->name, OPEN_FLAGS | O_CREAT | O_EXCL);
    if (t->fd < 0)
        return errno == EEXIST ? TEMP_FILE_EXISTS : TEMP_FILE_ERRNO;
    r = claim(t);
    if (r != TEMP_FILE_OK)
        temp_file_close(t);
    return r;
}

/* Checks that the open file may be replaced. */
static temp_file_result check_contents(const temp_file *t)
{
    unsigned char first[SECTOR_BYTES];
    struct stat st;
    ssize_t n;

    if (fstat(t->fd, &st) != 0)
        return TEMP_FILE_ERRNO;
    if (!S_ISREG(st.st_mode))
        return TEMP_FILE_SPECIAL;
    if (st.st_nlink != 1)
        return TEMP_FILE_LINKED;
    if (t->magic == NULL)
        return TEMP_FILE_OK;
    do {
        n = pread(t->fd, first, sizeof first, 0);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return TEMP_FILE_ERRNO;
    return all_zero(first, (size_t)n) ||
                   memcmp(first, t->magic,
                          n < TEMP_FILE_MAGIC ? (size_t)n
                                              : TEMP_FILE_MAGIC) == 0
               ? TEMP_FILE_OK
               : TEMP_FILE_FOREIGN;
}

temp_file_result temp_file_open(temp_file *t, bool create)
{
    temp_file_result r;
    struct stat st;

    t->fd = -1;
    /* Opening something else, such as a device, could have side effects. */
    if (fstatat(t->folder, t->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        !S_ISREG(st.st_mode))
        return TEMP_FILE_SPECIAL;
    t->fd = files_openat(t->folder, t->name,
                         create ? OPEN_FLAGS | O_CREAT : OPEN_FLAGS);
    if (t->fd < 0)
        return errno == ENOENT ? TEMP_FILE_ERRNO : TEMP_FILE_UNOPENED;
    r = claim(t);
    if (r == TEMP_FILE_OK)
        r = check_contents(t);
    if (r != TEMP_FILE_OK)
        temp_file_close(t);
    return r;
}

temp_file_result temp_file_discard(temp_file *t)
{
    temp_file_result r = TEMP_FILE_OK;

    if (temp_file_has_name(t) && unlinkat(t->folder, t->name, 0) != 0)
        r = TEMP_FILE_ERRNO;
    temp_file_close(t);
    return r;
}

temp_file_result temp_file_create(temp_file *t)
{
    temp_file_result r = temp_file_create_new(t);

    if (r != TEMP_FILE_EXISTS)
        return r;
    r = temp_file_open(t, false);
    if (r == TEMP_FILE_OK)
        r = temp_file_discard(t);
    if (r != TEMP_FILE_OK && (r != TEMP_FILE_ERRNO || errno != ENOENT))
        return r;
    r = temp_file_create_new(t);
    /* Another process created it first. */
    return r == TEMP_FILE_EXISTS ? TEMP_FILE_LOCKED : r;
}
