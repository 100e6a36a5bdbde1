/*
 * file_end.h - detect that another program truncated the regular file being
 * written; shared by the library and the programs.
 *
 * Without this check, writing after a truncation would leave a hole in the
 * file.  With O_APPEND there is no hole, but the lost bytes would go unnoticed.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef COMMON_FILE_END_H
#define COMMON_FILE_END_H

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Message for a truncated file.  Arguments: the actual and the expected size of
 * the file, in bytes (uint64_t).
 */
#define FILE_END_CUT                                                         \
    "has %" PRIu64 " bytes, but %" PRIu64 " were written: truncated by "     \
    "another program"

/* Zero-initialise before the first call. */
typedef struct file_end {
    enum {
        FILE_END_UNKNOWN, /* not examined yet */
        FILE_END_BEGUN,   /* regular file, nothing written yet */
        FILE_END_WATCHED, /* regular file, its size is checked */
        FILE_END_NONE     /* cannot be checked */
    } kind;
    bool appends;  /* opened with O_APPEND */
    uint64_t at;   /* minimum size of the file, in bytes */
    uint64_t size; /* size at the last check, in bytes */
} file_end;

/*
 * Returns false if the file is shorter than the bytes written to it.  Call this
 * before each write and after the last one.
 *
 * Only regular files are checked, and only if the file system reports the new
 * size immediately after a write.  If fstat fails, the check is disabled, and
 * the next write reports the error.
 */
static inline bool file_end_holds(file_end *end, int fd)
{
    struct stat st;

    if (end->kind != FILE_END_NONE && fstat(fd, &st) != 0)
        end->kind = FILE_END_NONE;
    if (end->kind == FILE_END_NONE)
        return true;
    end->size = (uint64_t)st.st_size;
    if (end->kind == FILE_END_UNKNOWN) {
        off_t place = lseek(fd, 0, SEEK_CUR);

        end->kind = S_ISREG(st.st_mode) && place >= 0 ? FILE_END_BEGUN
                                                      : FILE_END_NONE;
        end->appends = (fcntl(fd, F_GETFL) & O_APPEND) != 0;
        /* The offset can be past the end of the file. */
        end->at = place < st.st_size ? (uint64_t)place : end->size;
    }
    if (end->kind == FILE_END_WATCHED && end->size < end->at)
        return false;
    if (end->appends)
        end->at = end->size;
    return true;
}

/* Call after each write of `n` bytes. */
static inline void file_end_add(file_end *end, int fd, uint64_t n)
{
    struct stat st;

    end->at += n;
    if (end->kind == FILE_END_BEGUN && n > 0)
        end->kind = fstat(fd, &st) == 0 && (uint64_t)st.st_size >= end->at
                        ? FILE_END_WATCHED
                        : FILE_END_NONE;
}

#endif
