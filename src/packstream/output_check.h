/*
 * output_check.h - what the job wrote to a regular file, and how to know it
 * again.
 *
 * The stream of a job need not begin where its file does: with ">>" others
 * may be before it.  So `base` is where in the file it begins, and lengths
 * are of the stream.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_OUTPUT_CHECK_H
#define PACKSTREAM_OUTPUT_CHECK_H

#include <stdbool.h>
#include <stdint.h>

/* What a state keeps of it. */
typedef struct output_check_mark {
    bool known; /* it is in a regular file */
    uint64_t base;
    uint64_t record; /* bytes of the last one, or about as many */
    uint64_t hash;   /* of samples */
} output_check_mark;

typedef struct output_check {
    const char *name;
    int fd; /* to read it with, or -1: it is in no regular file */
    uint64_t base;
} output_check;

/*
 * Begins with what comes next on `out`.  An exit status after a message, here
 * and below.
 */
int output_check_begin(output_check *w, const char *name, int out);

/* How long what was written to `out` is; false after a message. */
bool output_check_length(const output_check *w, int out, uint64_t *length);

/* The mark of so many bytes that are written. */
int output_check_take(const output_check *w, uint64_t length, uint64_t record,
                      output_check_mark *mark);

/*
 * Opens the output of which a mark is, which must have so many bytes as they
 * were; nothing is changed.  Or a pipe or device, if that was one.
 */
int output_check_reopen(output_check *w, const char *name, int in, int *out,
                        const output_check_mark *mark, uint64_t length);

/* Leaves it open at its end, where another job may write on. */
int output_check_go_to_end(const output_check *w, int out, uint64_t length);

/* Cuts away what is behind them; the next byte is written there. */
int output_check_cut(const output_check *w, int out, uint64_t length);

void output_check_close(output_check *w);

#endif
