/*
 * file_end.h - the end of the regular file that is being written; the library
 * and the programs share it.
 *
 * Another program that cuts the file would leave a hole in it, or lose what
 * an output that appends has written.
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

/* What to say of a file that was cut: its size, and what it should be. */
#define FILE_END_CUT                                                         \
    "has %" PRIu64 " bytes, but %" PRIu64 " were written: another program "  \
    "cut it"

/* Zeros at first. */
typedef struct file_end {
    enum {
        FILE_END_UNKNOWN,
        FILE_END_BEGUN, /* nothing was written yet */
        FILE_END_WATCHED,
        FILE_END_NONE
    } kind;
    bool appends;
    uint64_t at;   /* the file is not shorter */
    uint64_t size; /* that it had at the last look */
} file_end;

/*
 * False if the file is shorter than what was written to it.  To be called
 * before each write and after the last one.  Only regular files have an end,
 * where the file system tells it when they have just grown.  What cannot be
 * looked at, a write tells.
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
        /* Behind the end of a file there may be nothing yet. */
        end->at = place < st.st_size ? (uint64_t)place : end->size;
    }
    if (end->kind == FILE_END_WATCHED && end->size < end->at)
        return false;
    if (end->appends)
        end->at = end->size;
    return true;
}

/* To be called after each write, of `n` bytes. */
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
