/*
 * files.h - open and close files and the standard streams without losing a
 * write error.
 *
 * This directory handles the files of the programs: it opens, reads, publishes
 * and resumes them.
 *
 *     files         inputs, outputs and locks, including stdin and stdout
 *     file_set      files that become visible together or not at all
 *     atomic_file   a file replaced atomically
 *     temp_file     a file under a temporary name, locked
 *     state_file    the state of a job: open, read and validate
 *     checkpoint    the numbers of a job, in its state
 *     resumable_output  recognise the output of the job being resumed
 *     records       write a stream of token records
 *     resumable_records  token records of a job that keeps a state
 *     packs         read packs, by seeking if possible
 *     histogram     read sequence lengths and their counts
 *     sandbox       drop unneeded rights
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef FILES_FILES_H
#define FILES_FILES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stat;

/*
 * Call this first in main.  Closed descriptors from 0 to 2 are opened in a way
 * that makes any use fail with EBADF.  SIGPIPE gets its default action, in case
 * the parent ignored or blocked it, and SIGXFSZ is ignored.
 */
void files_init(void);

/*
 * Opens a file for reading; NULL or "-" is stdin.  Directories are refused.
 * Returns the descriptor; on failure, prints a message and returns -1.
 */
int files_open_input(const char *name);

/* openat with O_CLOEXEC, retried after EINTR; `folder` may be AT_FDCWD. */
int files_openat(int folder, const char *name, int flags);

/* True if a name means stdin or stdout: NULL or "-". */
bool files_is_standard(const char *name);

/*
 * stat of a name, or fstat of the descriptor `standard` if the name means a
 * standard stream.  On failure, returns false with errno set.
 */
bool files_stat(const char *name, int standard, struct stat *st);

/*
 * Buffer size for names, in bytes, including the NUL.  Longer names are
 * refused.
 */
#ifdef PATH_MAX
#define FILES_MAX_NAME PATH_MAX
#else
#define FILES_MAX_NAME 4096
#endif

/*
 * Resolves symbolic links in the last component of `name`; the target need not
 * exist.  On failure, returns false with errno set.
 */
bool files_follow(const char *name, char path[FILES_MAX_NAME]);

/*
 * Copies the directory of `path` ("." if there is none) to `folder` and
 * returns the base name, which points into `path`.
 */
const char *files_split(const char *path, char folder[FILES_MAX_NAME]);

/*
 * The first `n` bytes of `stem` plus `ending`, or NULL if out of memory.  The
 * caller frees it.
 */
char *files_join(const char *stem, size_t n, const char *ending);

/* True if both describe the same file. */
bool files_are_one(const struct stat *a, const struct stat *b);

/* True if two names denote the same directory entry, which need not exist. */
bool files_are_one_name(const char *a, const char *b);

/* "stdin" or "stdout", or the name made printable; for messages. */
const char *files_input_name(const char *name);
const char *files_output_name(const char *name);

/*
 * Checks, without opening them, that the inputs are readable.  Like the other
 * checks below, prints a message and returns an exit status.
 */
int files_check_readable(const char *const *names, int n);

/*
 * Opens a file for writing and creates it if necessary; NULL or "-" is stdout.
 * Refuses a terminal if `binary` is set, and the file that is open as
 * `input_fd` (-1: none).  On failure, prints a message and returns -1.
 *
 * An existing file keeps its contents until files_begin truncates it, so call
 * files_begin only after all checks have succeeded.  Stdout is never truncated.
 * On failure, files_begin prints a message and returns false.
 */
int files_open_output(const char *name, bool binary, int input_fd);
bool files_begin(int fd, const char *name);

/*
 * Like files_open_output for a binary output, and locks a regular file against
 * a second writer.
 */
int files_open_output_alone(const char *name, int input_fd);

/*
 * Like files_open_output_alone, to resume an output.  The output must exist
 * and, if it is a regular file, have at least `length` bytes.  It is not
 * changed until files_cut truncates it to `length` bytes.  files_cut does
 * nothing to a pipe or device; on failure, it prints a message and returns
 * false.
 */
int files_reopen_output(const char *name, int input_fd, uint64_t length);
bool files_cut(int fd, const char *name, uint64_t length);

/*
 * Writes all bytes.  If the descriptor is nonblocking, waits until it accepts
 * more.  On failure, returns false with errno set.
 */
bool files_write(int fd, const void *bytes, size_t n);

/*
 * Syncs a regular file's data to disk.  On failure, prints a message and
 * returns false.
 */
bool files_sync(int fd, const char *name);

/*
 * fsync of a file or a directory, retried after EINTR.  For a directory, also
 * succeeds if the file system cannot sync directories and does not need it.  On
 * failure, returns false with errno set.
 */
bool files_fsync(int fd);
bool files_sync_folder(int fd);

/*
 * Syncs the directory of an output, or of the target if the output is a
 * symbolic link, so that the name survives a crash.  Does nothing for a
 * standard stream, or if the file system cannot sync directories.  On failure,
 * prints a message and returns false.
 */
bool files_sync_name(const char *name);

/*
 * Check that an output is not a regular file that is also an input, because
 * truncating the output would destroy the input.
 */
int files_check_input(const char *name, const char *input);
int files_check_inputs(const char *name, const char *const *inputs, int n);

/* Checks that two outputs are not the same file or pipe. */
int files_check_distinct(const char *name, const char *other);

/*
 * Locks a regular file that is open for writing; does not wait.  The lock
 * belongs to the open file description: it lasts until it is released or all
 * descriptors of the description are closed.  On failure, returns false with
 * errno set, to EAGAIN if another process holds the lock.  Returns true on file
 * systems without locks.
 */
bool files_lock(int fd);

typedef enum files_kind {
    FILES_REGULAR,
    FILES_DEVICE, /* such as /dev/null; writes never block */
    /* pipe or socket: another process reads or writes the other end */
    FILES_PIPE
} files_kind;

bool files_is(files_kind kind, int fd);

/*
 * True if the name must not be replaced by a rename: it is a pipe, a device or
 * anything else except a regular file or directory, or it is a kernel-provided
 * link to an open file, such as /dev/stdout.
 */
bool files_is_special(const char *name);

/*
 * Opens the directory that contains `name`.  On failure, returns -1 with errno
 * set.
 */
int files_open_folder(const char *name);

/* True if the output `name` is a regular file or does not exist yet. */
bool files_is_for_file(const char *name);

/*
 * Checks that no other program changed the length of a regular file to which
 * `length` bytes were written.  A file that is stdout may be longer.
 */
int files_check_length(int fd, const char *name, uint64_t length);

/* Total size of all inputs, in bytes; false unless all are regular files. */
bool files_inputs_size(const char *const *names, int n, uint64_t *bytes);

/* Number of descriptors that can still be opened, at most `most`. */
uint64_t files_left_to_open(uint64_t most);

/*
 * Current offset in a regular file, where the next write goes, in bytes.  On
 * failure, returns false with errno set.
 */
bool files_offset(int fd, uint64_t *bytes);

/*
 * Opens the regular file `output` a second time, for reading.  `name` is its
 * name.  On failure, prints a message and returns -1.
 */
int files_reread_output(const char *name, int output);

/* Closes a descriptor other than stdin. */
void files_close_input(int fd);

/*
 * Closes an output, including stdout, and reports errors under `name`.  Returns
 * true on success.  The lock is released even if another process shares the
 * descriptor and keeps the file open.
 */
bool files_close_output(int fd, const char *name);

/* Closes an output after an error that was already reported; prints nothing. */
void files_abandon_output(int fd);

/*
 * Closes an output unless `fd` is -1: by files_close_output if `status` is
 * STATUS_OK, otherwise by files_abandon_output, since an error was already
 * reported.  Returns `status`, or STATUS_FAILURE if closing failed.
 */
int files_end_output(int fd, const char *name, int status);

/*
 * Flushes and closes stdout for programs that use stdio.  Prints a message and
 * returns false if any write to it failed.
 */
bool files_close_stdout(void);

#endif
