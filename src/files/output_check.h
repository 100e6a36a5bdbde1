/*
 * output_check.h - verify that a regular file is the output of the job being
 * resumed, before it is truncated and extended.
 *
 * The stream need not start at the beginning of the file: with ">>" other data
 * may precede it.  `base` is the stream's offset in the file; lengths refer to
 * the stream.  All are in bytes.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef FILES_OUTPUT_CHECK_H
#define FILES_OUTPUT_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fingerprint of an output, saved in the state. */
typedef struct output_check_mark {
    bool known;    /* the output is a regular file */
    uint64_t base; /* offset of the stream in the file */
    uint64_t last; /* size of the sample at the end, in bytes, before limits */
    uint64_t hash; /* XXH3-64 of the samples */
} output_check_mark;

typedef struct output_check {
    const char *name;
    int fd;        /* descriptor for reading; -1: not a regular file */
    uint64_t base; /* offset of the stream in the file */
} output_check;

/*
 * Starts at the current offset of `out` and syncs the directory entry, since a
 * state on disk must not outlive the output's name.  Like the functions below,
 * returns an exit status and prints a message on failure.
 */
int output_check_begin(output_check *o, const char *name, int out);

/*
 * Number of bytes written to `out` so far.  On failure, prints a message and
 * returns false.
 */
bool output_check_length(const output_check *o, int out, uint64_t *length);

/*
 * Fingerprints the first `length` bytes.  The sample at the end has 4 KiB, or
 * `last` bytes if that is more, and at most 4 MiB.
 */
int output_check_take(const output_check *o, uint64_t length, uint64_t last,
                      output_check_mark *mark);

/*
 * Opens the output described by `mark`.  The samples of its first `length`
 * bytes must be unchanged; nothing is modified.  A pipe or device is opened
 * without a check.  `in` is the input's descriptor or -1.
 */
int output_check_reopen(output_check *o, const char *name, int in, int *out,
                        const output_check_mark *mark, uint64_t length);

/*
 * For a job stopped before its first record, only the offset of its output is
 * known.  The data there will be truncated, so it must look like the start of
 * an output.  The test gets fewer than OUTPUT_CHECK_FIRST bytes only if the
 * file has no more.
 */
#define OUTPUT_CHECK_FIRST 8
typedef bool output_check_test(const unsigned char *bytes, size_t n);
int output_check_start(const output_check *o, int out,
                       output_check_test *is_start);

/*
 * True if the output of a job stopped before its first record is missing: its
 * name may not have survived a crash.
 */
bool output_check_is_gone(const char *name, const output_check_mark *mark);

/*
 * Checks that the first `length` bytes are the whole output, and that `written`
 * bytes were written in all.  On failure, prints a message and returns false.
 */
bool output_check_has(const output_check *o, int out, uint64_t length,
                      uint64_t written);

/* Seeks to the end of the stream, so that another job can append there. */
int output_check_go_to_end(const output_check *o, int out, uint64_t length);

/* Truncates the stream to `length` bytes and seeks there. */
int output_check_cut(const output_check *o, int out, uint64_t length);

void output_check_close(output_check *o);

#endif
