/*
 * atomic_file.h - a small file that is replaced again and again, so that at any
 * instant there is the old one or the new one, whole.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_ATOMIC_FILE_H
#define CLI_ATOMIC_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the name of the next one ends in, until it is whole. */
#define REPLACE_SUFFIX ".new"

/*
 * Whether a file that begins with these bytes is of the kind that is kept
 * here; there are fewer than REPLACE_FIRST only if it has no more.
 */
#define REPLACE_FIRST 8
typedef bool atomic_file_test(const unsigned char *bytes, size_t n);

typedef struct replace {
    const char *name; /* as it was given */
    const char *base; /* in its folder */
    char *next_name;
    const char *next_base;
    atomic_file_test *is_ours;
    int folder;
    int next; /* the next one, locked, and empty until it is filled; or -1 */
    uint64_t next_size;
} replace;

/*
 * Prepares to replace the file `name`, which need not be there; its folder
 * stays open.  The next one is begun at once, so that it shows now if that
 * cannot be done, and no other process keeps the same file meanwhile.  One
 * that a killed process left behind is removed, and nothing else.
 * False after a message.
 */
bool atomic_file_open(replace *r, const char *name, atomic_file_test *is_ours);

/*
 * Fills the next one, has it on the disk, puts it in the place of the old
 * one, and begins another.  False after a message; then the old one is still
 * there, or the new one is.  If another program has changed the next one or
 * taken its name, the old one stays.
 */
bool atomic_file_write(replace *r, const void *bytes, size_t n);

/*
 * Reads the file whole, to memory that the caller frees; *bytes is NULL if
 * there is none.  Of a file of another kind only the first bytes are read.
 * False after a message, also if it has more than `max` bytes.
 */
bool atomic_file_read(const replace *r, uint64_t max, unsigned char **bytes,
                      size_t *n);

/* The next one, which was not needed, is removed if it is as it was left. */
void atomic_file_close(replace *r);

#endif
