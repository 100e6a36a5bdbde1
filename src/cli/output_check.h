/*
 * output_check.h - recognises a regular file as the output that an earlier job
 * wrote, before it is cut and gone on with.
 *
 * The stream of a job need not begin where its file does: with ">>" others
 * may be before it.  So `base` is where in the file it begins, and lengths
 * are of the stream.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_OUTPUT_CHECK_H
#define CLI_OUTPUT_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a state keeps of it. */
typedef struct output_check_mark {
    bool known; /* it is in a regular file */
    uint64_t base;
    uint64_t last; /* bytes at its end that are a sample */
    uint64_t hash; /* of samples */
} output_check_mark;

typedef struct output_check {
    const char *name;
    int fd; /* to read it with, or -1: it is in no regular file */
    uint64_t base;
} output_check;

/*
 * For a stream that begins with the next byte on `out`, whose name is brought
 * to the disk: what a state knows must outlast a power cut.  An exit status
 * after a message, here and below.
 */
int output_check_begin(output_check *o, const char *name, int out);

/* The length of what was written to `out`; false after a message. */
bool output_check_length(const output_check *o, int out, uint64_t *length);

/*
 * Marks the first `length` bytes.  The last of them are a sample: 4 KiB, or
 * `last` bytes if that is more, but at most 4 MiB.
 */
int output_check_take(const output_check *o, uint64_t length, uint64_t last,
                      output_check_mark *mark);

/*
 * Opens the output that a mark is of: its first `length` bytes must be what
 * they were, and nothing is changed.  A pipe or device is opened as it is.
 */
int output_check_reopen(output_check *o, const char *name, int in, int *out,
                        const output_check_mark *mark, uint64_t length);

/*
 * A job that was stopped before its first record left nothing but the place
 * where it began.  What is there now is to be cut, so it must begin as an
 * output does; the test gets fewer than OUTPUT_CHECK_FIRST bytes only if there
 * are no more.
 */
#define OUTPUT_CHECK_FIRST 8
typedef bool output_check_test(const unsigned char *bytes, size_t n);
int output_check_start(const output_check *o, int out,
                       output_check_test *is_start);

/*
 * Whether the output of such a job is not there: its name need not have
 * outlived a crash.
 */
bool output_check_is_gone(const char *name, const output_check_mark *mark);

/*
 * Whether the output ends with its first `length` bytes, and these are all that
 * were `written`; false after a message.
 */
bool output_check_has(const output_check *o, int out, uint64_t length,
                      uint64_t written);

/* Goes to the end of the stream, where another job may write on. */
int output_check_go_to_end(const output_check *o, int out, uint64_t length);

/* Cuts the stream to `length` bytes; the next one is written there. */
int output_check_cut(const output_check *o, int out, uint64_t length);

void output_check_close(output_check *o);

#endif
