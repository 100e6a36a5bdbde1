/*
 * atomic_file.h - a small file that is replaced again and again, so that at
 * any instant the old one or the new one is there, whole.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_ATOMIC_FILE_H
#define CLI_ATOMIC_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the name of the next file ends in, until it is whole. */
#define ATOMIC_FILE_SUFFIX ".new"

/*
 * Tells by its first bytes whether a file is of the kind that is kept here;
 * there are fewer than ATOMIC_FILE_MAGIC only if it has no more.
 */
#define ATOMIC_FILE_MAGIC 8
typedef bool atomic_file_test(const unsigned char *bytes, size_t n);

typedef struct atomic_file {
    const char *name; /* as it was given */
    char *path;       /* where it leads, links followed */
    const char *base; /* in its folder */
    char *next_name;
    const char *next_base;
    atomic_file_test *is_ours;
    int folder;
    int next; /* the next file, locked, and empty until it is filled; or -1 */
    uint64_t next_size;
} atomic_file;

/*
 * Prepares to replace the file `name`, which need not be there; its folder
 * stays open.  A symbolic link stays, and where it leads is replaced.  The
 * next file is created at once, to find out now whether that can be done, and
 * to keep other processes from the same file meanwhile.  One that a killed
 * process left behind is removed, and nothing else.
 * False after a message.
 */
bool atomic_file_open(atomic_file *f, const char *name,
                      atomic_file_test *is_ours);

/*
 * Fills the next file, has it on the disk, puts it in the place of the old
 * one, and creates another.  False after a message; then either the old file
 * is there, or the new one.  If another program has changed the next file or
 * taken its name, the old one stays.
 */
bool atomic_file_write(atomic_file *f, const void *bytes, size_t n);

/*
 * Reads the whole file, to memory that the caller frees; *bytes is NULL if
 * there is no file.  Of a file of another kind only the first bytes are read.
 * False after a message, also if it has more than `max` bytes.
 */
bool atomic_file_read(const atomic_file *f, uint64_t max,
                      unsigned char **bytes, size_t *n);

/* Removes the next file, which was not needed, if it is as it was left. */
void atomic_file_close(atomic_file *f);

#endif
