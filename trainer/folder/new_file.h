/*
 * new_file.h - a file that appears, or replaces the old one, once complete.
 *
 * The contents are written to NAME.new in the same directory.  A file that a
 * killed process left under that name is replaced.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_FOLDER_NEW_FILE_H
#define TR_FOLDER_NEW_FILE_H

#include <stddef.h>

#include "files/temp_file.h"
#include "packstream.h"

/* Buffer size for names in the directory, in bytes, including the NUL. */
#define NEW_FILE_NAME 256

typedef struct new_file {
    temp_file temp; /* temp.name is `next` */
    char name[NEW_FILE_NAME];
    char next[NEW_FILE_NAME]; /* `name` and ".new" */
} new_file;

/* Initial value: not open, so new_file_abandon does nothing. */
#define NEW_FILE_CLOSED {.temp = {.fd = -1}}

/*
 * Creates NAME.new in the directory `folder`, which stays open until the file
 * is published or abandoned.
 *
 * PS_OK, PS_ERR_ARGUMENT (the name is too long), PS_ERR_IO (also: another
 * process is writing NAME.new, or it is not a regular file).
 */
ps_result new_file_open(new_file *f, int folder, const char *name,
                        ps_error *err);

/* Appends n bytes.  PS_OK, PS_ERR_IO. */
ps_result new_file_write(new_file *f, const void *bytes, size_t n,
                         ps_error *err);

/* Syncs the contents; the name is still NAME.new.  PS_OK, PS_ERR_IO. */
ps_result new_file_sync(new_file *f, ps_error *err);

/*
 * Renames a synced file to NAME and closes it.  On failure it is still to be
 * abandoned.  Sync the directory afterwards.  PS_OK, PS_ERR_IO.
 */
ps_result new_file_publish(new_file *f, ps_error *err);

/* Removes NAME.new if it is open.  Does not change errno. */
void new_file_abandon(new_file *f);

#endif /* TR_FOLDER_NEW_FILE_H */
