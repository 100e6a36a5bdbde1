/*
 * atomic_file.h - a small file that is replaced atomically, many times.  At any
 * instant either the complete old or the complete new version exists.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef FILES_ATOMIC_FILE_H
#define FILES_ATOMIC_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "files/temp_file.h"

/* Suffix of the next file, which becomes the file once it is complete. */
#define ATOMIC_FILE_SUFFIX ".new"

typedef struct atomic_file {
    const char *name;   /* as given; owned by the caller */
    char *path;         /* `name` with symbolic links resolved; owned */
    const char *base;   /* last component of `path` */
    char *next_name;    /* full name of the next file; owned */
    int folder;         /* descriptor of the directory; -1: not open */
    temp_file next;     /* the next file, empty until written */
    uint64_t next_size; /* bytes written to the next file */
} atomic_file;

/* Initial value: not open, so atomic_file_close does nothing. */
#define ATOMIC_FILE_CLOSED {.folder = -1, .next = {.fd = -1}}

/*
 * Prepares to replace the file `name`, which need not exist, and opens its
 * directory.  If `name` is a symbolic link, its target is replaced.
 *
 * The next file is created immediately, to report errors now and to lock out
 * other processes.  If a killed process left a next file, that file is removed
 * first (see temp_file_create); if any other file has the name, the call fails.
 * Both files start with `magic`.  On failure, prints a message and returns
 * false.
 */
bool atomic_file_open(atomic_file *f, const char *name, const char *magic);

/*
 * Writes `bytes` to the next file, syncs it, renames it over the old file and
 * creates another next file.  On failure, prints a message and returns false;
 * the file is then either the old or the new version.  If another program
 * changed or renamed the next file, the old file is not replaced.
 */
bool atomic_file_write(atomic_file *f, const void *bytes, size_t n);

/*
 * Reads the whole file into *bytes, which the caller frees.  *bytes is NULL if
 * the file does not exist.  If the file does not start with `magic`, only its
 * first bytes are read.  On failure, prints a message and returns false; a file
 * of more than `max` bytes is an error.
 */
bool atomic_file_read(const atomic_file *f, uint64_t max,
                      unsigned char **bytes, size_t *n);

/* Removes the unused next file unless another program changed it. */
void atomic_file_close(atomic_file *f);

#endif
