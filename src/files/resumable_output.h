/*
 * resumable_output.h - verify that a regular file is the output of the job
 * being resumed, before it is truncated and extended.
 *
 * The stream need not start at the beginning of the file: with ">>" other data
 * may precede it.  `base` is the stream's offset in the file; lengths refer to
 * the stream.  All are in bytes.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef FILES_RESUMABLE_OUTPUT_H
#define FILES_RESUMABLE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fingerprint of an output, saved in the state. */
typedef struct output_fingerprint {
    bool known;    /* the output is a regular file */
    uint64_t base; /* offset of the stream in the file */
    uint64_t last; /* requested size of the sample at the end, in bytes */
    uint64_t hash; /* XXH3-64 of the samples */
} output_fingerprint;

typedef struct resumable_output {
    const char *name;
    int fd;        /* descriptor for reading; -1: not a regular file */
    uint64_t base; /* offset of the stream in the file */
} resumable_output;

/*
 * Starts at the current offset of `out` and syncs the directory entry: if a
 * state survives a crash, the output's name must survive too.  Like the
 * functions below, returns an exit status and prints a message on failure.
 */
int resumable_output_begin(resumable_output *o, const char *name, int out);

/* Number of bytes written to `out` so far. */
int resumable_output_length(const resumable_output *o, int out,
                            uint64_t *length);

/*
 * Fingerprints the first `length` bytes.  The sample at the end has 4 KiB, or
 * `last` bytes if that is more, and at most 4 MiB.
 */
int resumable_output_fingerprint(const resumable_output *o, uint64_t length,
                                 uint64_t last,
                                 output_fingerprint *fingerprint);

/*
 * Opens the output described by `fingerprint`.  The samples of its first
 * `length` bytes must be unchanged; nothing is modified.  A pipe or device is
 * opened without a check.  `in` is the input's descriptor or -1.
 */
int resumable_output_reopen(resumable_output *o, const char *name, int in,
                            int *out, const output_fingerprint *fingerprint,
                            uint64_t length);

/*
 * If a job was stopped before its first record, only the offset of its output
 * is known.  The data at this offset will be truncated, so check that it looks
 * like the start of an output.  `is_start` gets RESUMABLE_OUTPUT_FIRST bytes,
 * or fewer if the file ends earlier.
 */
#define RESUMABLE_OUTPUT_FIRST 8
typedef bool resumable_output_test(const unsigned char *bytes, size_t n);
int resumable_output_start(const resumable_output *o, int out,
                           resumable_output_test *is_start);

/*
 * True if the output of a job stopped before its first record is missing, since
 * its name may not have survived a crash.
 */
bool resumable_output_is_gone(const char *name,
                              const output_fingerprint *fingerprint);

/*
 * Checks that the output has exactly `length` bytes, and that this equals the
 * number of bytes `written`.
 */
int resumable_output_check(const resumable_output *o, int out, uint64_t length,
                           uint64_t written);

/* Seeks to the end of the stream, so that another job can append to it. */
int resumable_output_seek_end(const resumable_output *o, int out,
                              uint64_t length);

/* Truncates the stream to `length` bytes and seeks there. */
int resumable_output_cut(const resumable_output *o, int out, uint64_t length);

void resumable_output_close(resumable_output *o);

#endif
