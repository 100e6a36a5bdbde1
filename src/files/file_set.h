/*
 * file_set.h - a set of output files that become visible together or not at
 * all.
 *
 * Each file is written as NAME.new and renamed once all of them are complete.
 * If the set has several files, existing files of the final names are first
 * moved to NAME.new.old, so that a failure can be undone.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef FILES_FILE_SET_H
#define FILES_FILE_SET_H

#include <stdbool.h>
#include <stddef.h>

#include "files/temp_file.h"

typedef struct file_set_member {
    char *name;      /* final name; owned */
    char *new_name;  /* name during writing; owned */
    temp_file file;  /* the new file, by its current name; name NULL: none */
    char *aside;     /* name of the existing file during publication; owned */
    temp_file older; /* the existing file; name NULL: not moved to `aside` */
} file_set_member;

/* Zero-initialise for an empty set. */
typedef struct file_set {
    file_set_member *members; /* owned */
    size_t n;                 /* number of members */
} file_set;

/*
 * Adds the file `stem` + `ending`: creates it under its temporary name, opens
 * it for reading and writing, and locks it (see files_lock).  A temporary file
 * left by a killed job is removed.  Returns the descriptor; on failure, prints
 * a message and returns -1.
 *
 * Refuses a name that exists and is not a regular file, one of the `n_inputs`
 * inputs, the file of another member and, if the set has several members, a
 * file whose NAME.new.old exists.
 */
int file_set_add(file_set *set, const char *stem, size_t stem_bytes,
                 const char *ending, const char *const *inputs, int n_inputs);

/*
 * Opens an output for writing.  A regular file, or a name that does not exist,
 * is added to the set, with symbolic links resolved.  Anything else, such as a
 * pipe or stdout (NULL or "-"), is opened by files_open_output, with `binary`
 * passed on.  An input is refused.  A file that replaces another file gets the
 * permissions of the old file.  Returns the descriptor; on failure, prints a
 * message and returns -1.
 */
int file_set_open(file_set *set, const char *name, bool binary,
                  const char *const *inputs, int n_inputs);

/*
 * True if a member `name` would write or remove the file `other`, under its
 * final name or one of its two temporary names.
 */
bool file_set_would_write(const char *name, const char *other);

/*
 * Checks that `input` is neither the output `name` of file_set_open nor one of
 * its temporary files.  On failure, prints a message; returns an exit status.
 */
int file_set_check_input(const char *name, const char *input);

/* Final name of the file added last. */
const char *file_set_name(const file_set *set);

/*
 * Gives all files their final names.  Call it after closing them.  If the set
 * has several files, existing files are moved aside first and restored if
 * anything fails, since a mixture of old and new files would be inconsistent.
 * It is an error if another program replaced a temporary file.  On failure,
 * prints a message and returns false; no new file then has its final name.
 */
bool file_set_publish(file_set *set);

/*
 * Enters the sandbox.  Afterwards the process can read these inputs, write its
 * open files, and publish or free the set.  On failure, prints a message and
 * returns false.
 */
bool file_set_enter_sandbox(const file_set *set, const char *const *inputs,
                            int n_inputs);

/* Removes files that were not published and frees the set. */
void file_set_free(file_set *set);

#endif
