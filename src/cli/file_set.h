/*
 * file_set.h - files that appear together or not at all.
 *
 * Each is written under another name, with ".new" behind its own.  When all
 * of them are whole, they get their own names; if there are several, older
 * files of these names are put aside first, with ".new.old" behind.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_FILE_SET_H
#define CLI_FILE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct file_set_member {
    char *name;
    char *new_name; /* under which it is written */
    dev_t device;   /* of the file with that name, */
    ino_t inode;
    bool created;   /* which is ours */
    bool named;     /* it has its own name */
    char *aside;    /* the name under which an older file waits meanwhile, */
    bool has_older; /* if there is one: */
    dev_t older_device;
    ino_t older_inode;
} file_set_member;

/* All zeros is empty. */
typedef struct file_set {
    file_set_member *members;
    size_t n;
} file_set;

/*
 * Adds a file, which is to have the name `stem` with `ending` behind, and makes
 * it anew, to write and to read, with a lock, as by files_lock.  What a job that
 * was killed left under the new name is removed.  A name of anything but a
 * regular file is refused, that of one of the `n_inputs`, and one that leads to
 * the file of another member; of several members, also one whose older file
 * cannot be put aside, as its name for that is taken.  -1 after a message.
 */
int file_set_add(file_set *set, const char *stem, size_t stem_bytes,
                 const char *ending, const char *const *inputs, int n_inputs);

/*
 * Opens an output to write: a regular file, or one that is not there yet, as
 * by file_set_add, where symbolic links lead; anything else, such as a pipe,
 * and stdout (NULL or "-") as by files_open_output, `binary` or not, if it is
 * none of the inputs.  A file that gets the name of another one gets its
 * permissions.  -1 after a message.
 */
int file_set_open(file_set *set, const char *name, bool binary,
                  const char *const *inputs, int n_inputs);

/*
 * Whether a member of this name would write to the file `other`, under its own
 * name or one of the two others, or remove it.
 */
bool file_set_would_write(const char *name, const char *other);

/*
 * False, after a message, if an output that file_set_open opens is this input,
 * or is written under its name.
 */
bool file_set_spares(const char *name, const char *input);

/* The name of the file that was added last. */
const char *file_set_name(const file_set *set);

/*
 * Gives all files their names, after they were closed.  Those of an older set,
 * which would be wrong about the new ones, are put aside meanwhile, and get
 * theirs back if that fails.  False after a message, also if a new file is not
 * the one that was opened; then no new file has its name.
 */
bool file_set_publish(file_set *set);

/*
 * Enters the sandbox; what is left to do is to read these inputs, to write what
 * is open, and to publish or to free the set.  False after a message.
 */
bool file_set_enter_sandbox(const file_set *set, const char *const *inputs,
                            int n_inputs);

/* Removes the files that were not published. */
void file_set_free(file_set *set);

#endif
