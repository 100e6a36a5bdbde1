/*
 * temp_file.h - a file under a temporary name that only this process writes.
 *
 * The file is locked, and its identity is known.  Other programs may ignore the
 * lock, so check temp_file_has_name before using the name again.  These
 * functions print no messages.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef FILES_TEMP_FILE_H
#define FILES_TEMP_FILE_H

#include <stdbool.h>
#include <sys/types.h>

/* Bytes at the start of a file that identify its format. */
#define TEMP_FILE_MAGIC 8

typedef enum temp_file_result {
    TEMP_FILE_OK,
    TEMP_FILE_ERRNO,    /* errno has the reason */
    TEMP_FILE_EXISTS,   /* the name is taken */
    TEMP_FILE_LOCKED,   /* another process is writing the file */
    TEMP_FILE_UNOPENED, /* exists and cannot be opened; see errno */
    TEMP_FILE_SPECIAL,  /* exists and is not a regular file */
    TEMP_FILE_LINKED,   /* exists and has another hard link */
    TEMP_FILE_FOREIGN   /* exists and does not start with `magic` */
} temp_file_result;

typedef struct temp_file {
    int folder;        /* directory of `name`, or AT_FDCWD */
    const char *name;  /* owned by the caller */
    const char *magic; /* start of files that may be replaced; NULL: any */
    int fd;            /* open for reading and writing; -1: not open */
    dev_t device;      /* identity of the file that was open last */
    ino_t inode;
} temp_file;

/* Creates the file unless its name is taken (TEMP_FILE_EXISTS). */
temp_file_result temp_file_create_new(temp_file *t);

/*
 * Creates the file.  First removes a file left by a killed process or a power
 * failure: an unlocked regular file without another hard link that is empty or
 * starts with `magic` or a sector of zeros.
 */
temp_file_result temp_file_create(temp_file *t);

/*
 * Opens a file that temp_file_create would remove.  If `create` is set, the
 * file may also be new.
 */
temp_file_result temp_file_open(temp_file *t, bool create);

/* True if the name still denotes the file. */
bool temp_file_has_name(const temp_file *t);

/* Removes the file unless another program took its name; closes it. */
temp_file_result temp_file_discard(temp_file *t);

/* Closes the file if it is open.  Does not change errno. */
void temp_file_close(temp_file *t);

#endif
