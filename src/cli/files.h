/*
 * files.h - files and the standard streams, opened with care and closed so
 * that no write error is lost.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_FILES_H
#define CLI_FILES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stat;

/*
 * To be called first in main: makes descriptors 0 to 2 valid (closed ones
 * are opened so that use of them fails: reads and writes give EBADF), lets
 * SIGPIPE kill again if a parent left it ignored, and lets no SIGXFSZ kill.
 */
void files_init(void);

/*
 * Opens a file to read; NULL or "-" is stdin.  Returns the descriptor, or
 * -1 after a message.  A directory is refused.
 */
int files_open_input(const char *name);

/* As openat, by a path in `folder` or AT_FDCWD; signals do not interrupt it. */
int files_openat(int folder, const char *name, int flags);

/* Whether a name, NULL or "-", means stdin or stdout. */
bool files_is_standard(const char *name);

/*
 * What a name stands for, as stat gives it; of a standard stream, what is open
 * as the descriptor `standard`.  False with errno.
 */
bool files_stat(const char *name, int standard, struct stat *st);

/* Longer names open nothing. */
#ifdef PATH_MAX
#define FILES_MAX_NAME PATH_MAX
#else
#define FILES_MAX_NAME 4096
#endif

/*
 * The place that a name leads to when symbolic links at its end are followed,
 * also if nothing is there yet.  False with errno if it leads nowhere.
 */
bool files_follow(const char *name, char place[FILES_MAX_NAME]);

/* Splits a place into its folder, "." if none is named, and its base name. */
const char *files_split(const char *place, char folder[FILES_MAX_NAME]);

/* Whether both are of one file. */
bool files_are_one(const struct stat *a, const struct stat *b);

/* Whether two names are one, be there anything under it or not. */
bool files_are_one_name(const char *a, const char *b);

/* "stdin" or the name, made printable, for messages. */
const char *files_input_name(const char *name);
const char *files_output_name(const char *name);

/*
 * Whether inputs can be read, as far as that shows without opening them; false
 * after a message.
 */
bool files_can_read(const char *const *names, int n);

/*
 * Opens a file to write, which is created if need be; NULL or "-" is stdout.
 * Refuses a terminal if `binary`, and a file that is the same as `input_fd`
 * (-1: none).  -1 after a message.
 *
 * A file that is there keeps its bytes until files_begin cuts it to nothing:
 * a program calls that when all has been checked that can be known before it
 * writes.  Standard output is not cut.  False after a message.
 */
int files_open_output(const char *name, bool binary, int input_fd);
bool files_begin(int fd, const char *name);

/*
 * The same for a binary output, which must not have another such writer at
 * the same time if it is a regular file.
 */
int files_open_output_alone(const char *name, int input_fd);

/*
 * The same to go on with an output, which must exist and, as a regular file,
 * have at least `length` bytes.  Nothing changes until files_cut removes what
 * lies behind them; it leaves anything but a regular file as it is, and returns
 * false after a message.
 */
int files_reopen_output(const char *name, int input_fd, uint64_t length);
bool files_cut(int fd, const char *name, uint64_t length);

/*
 * Writes all of the bytes, and waits where a descriptor that does not block
 * takes none for now.  False with errno.
 */
bool files_write(int fd, const void *bytes, size_t n);

/*
 * Makes sure that what was written to a regular file is on the disk.  False
 * after a message.
 */
bool files_sync(int fd, const char *name);

/*
 * Makes sure that the name of an output lasts, too, as far as its folder can be
 * synchronised; of a symbolic link it is the one where that leads.  A standard
 * stream has its name from elsewhere.  False after a message.
 */
bool files_sync_name(const char *name);

/*
 * False, after a message, if the output `name` is a regular file that is
 * also an input, or one of `n` inputs: opening it would cut the input.
 */
bool files_spare_input(const char *name, const char *input);
bool files_spare_inputs(const char *name, const char *const *inputs,
                        int n);

/* False, after a message, if two outputs are one file or one pipe. */
bool files_are_distinct(const char *name, const char *other);

/*
 * Takes the lock of the regular file `fd`, which is open for writing, and does
 * not wait for it; the lock belongs to the open file, and lasts until it is
 * dropped, or all processes that share `fd` have closed it.  False with errno,
 * which is EAGAIN if another process has it.  True as well where a file system
 * knows no locks.
 */
bool files_lock(int fd);

typedef enum files_kind {
    FILES_REGULAR,
    FILES_DEVICE, /* such as /dev/null, which takes all at once */
    FILES_PIPE    /* or a socket: another process is at the other end */
} files_kind;

bool files_is(files_kind kind, int fd);

/*
 * Whether a pipe, a device or the like is there under this name; or a link of
 * the system to an open file, such as /dev/stdout, which nothing may replace.
 */
bool files_is_special(const char *name);

/* Opens the folder that a file of this name is in.  -1 with errno. */
int files_open_folder(const char *name);

/* True if the output `name` is a regular file, or would become one. */
bool files_is_for_file(const char *name);

/*
 * False, after a message, if a regular file does not have the `length` bytes
 * that were written to it, or, unless it is stdout, has more: someone else
 * wrote to it or cut it.
 */
bool files_has_length(int fd, const char *name, uint64_t length);

/* The bytes of all these inputs; false unless all are regular files. */
bool files_inputs_size(const char *const *names, int n, uint64_t *bytes);

/* The number of files that can still be opened, counted up to `most`. */
uint64_t files_left_to_open(uint64_t most);

/* Where the next byte of a regular file goes; false with errno if unknown. */
bool files_place(int fd, uint64_t *bytes);

/*
 * Opens a regular file that is the output `name` once more, to read what was
 * written.  -1 after a message.
 */
int files_reread_output(const char *name, int output);

/* Closes, unless it is stdin. */
void files_close_input(int fd);

/*
 * Closes an output, stdout too, and reports under `name` what goes wrong.  True
 * if all went well.  The lock is dropped in any case, even if a process that
 * shares the descriptor keeps the file open.
 */
bool files_close_output(int fd, const char *name);

/* The same after an error that was told: says nothing. */
void files_abandon_output(int fd);

/*
 * Closes an output, unless `fd` is -1: as files_close_output if `status` is
 * STATUS_OK, otherwise as files_abandon_output, since a failure was reported
 * already.  Returns the status of the first failure.
 */
int files_end_output(int fd, const char *name, int status);

/*
 * Flushes and closes the stdio stream stdout, for programs that print; a
 * message and false if any write to it failed.
 */
bool files_close_stdout(void);

#endif
