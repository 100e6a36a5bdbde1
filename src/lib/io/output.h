/*
 * output.h - a buffered output in which blocks are built in place, written
 * and, if asked for, compressed on threads of its own.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_IO_OUTPUT_H
#define LIB_IO_OUTPUT_H

#include "packstream.h"

typedef struct ps_output ps_output;

/* What is done with a block that was committed before it is written. */
typedef struct ps_output_finalizer {
    /* Finalizes it; on any thread, and others at the same time. */
    void (*finalize)(void *context, unsigned char *block);
    /* Sees it finalized, in the order of the output. */
    void (*follow)(void *context, const unsigned char *block);
    void *context;
} ps_output_finalizer;

typedef struct ps_output_options {
    size_t largest;   /* the most that ps_output_commit will be given */
    uint32_t threads; /* that write and compress; 0: the caller does it */
    bool compressed;  /* to frames of zstd's seekable format... */
    int level;        /* ...of this level */
    uint32_t max_frames; /* that there may be; 0: no limit */
    const ps_output_finalizer *finalizer; /* copied; or NULL */

    ps_write_hook *write; /* takes the bytes instead of `fd`; or NULL */
    void *write_context;

    /* To go on where another output was; else zeros. */
    uint64_t written;           /* bytes of the output */
    const unsigned char *table; /* of the frames in them, or NULL */
    size_t table_bytes;
} ps_output_options;

/* Where an output is, so that another one can go on from there. */
typedef struct ps_output_place {
    uint64_t written;           /* bytes */
    const unsigned char *table; /* of frames, or NULL */
    size_t table_bytes;
} ps_output_place;

/* A bound of its memory; with the table only if `max_frames` is given. */
uint64_t ps_output_bytes(const ps_output_options *options);

/* PS_ERR_MEMORY; of a table that is not right, PS_ERR_CORRUPT. */
ps_result ps_output_open(ps_output **output, int fd,
                         const ps_output_options *options,
                         ps_error *err);

/*
 * The memory of the next block, `largest` bytes, to be filled before the next
 * call of any other function.  What was put before must have been cut off.
 */
unsigned char *ps_output_block(ps_output *output);

/*
 * Has `n` bytes of that memory finalized and, if `keep`, written; they are a
 * frame if frames are written.  Failures are those of the bytes before them:
 * PS_ERR_IO, PS_ERR_MEMORY.
 */
ps_result ps_output_commit(ps_output *output, size_t n, bool keep,
                           ps_error *err);

/*
 * Copies any number of bytes to the output.  They are not finalized.  As
 * ps_output_commit.
 */
ps_result ps_output_put(ps_output *output, const void *data, size_t n,
                        ps_error *err);

/* Hands over what was put: a block begins, and a frame if these are written. */
ps_result ps_output_cut(ps_output *output, ps_error *err);

/* Has all that was cut off or committed written soon, without waiting. */
ps_result ps_output_push(ps_output *output, ps_error *err);

/* Returns when everything so far is written. */
ps_result ps_output_flush(ps_output *output, ps_error *err);

/*
 * As ps_output_flush; and tells where the output is.  The pointers are valid
 * until the next call.
 */
ps_result ps_output_where(ps_output *output, ps_output_place *place,
                          ps_error *err);

/* The bytes written so far; all of them after a flush. */
uint64_t ps_output_written(const ps_output *output);

/* Writes the last frame, too, and the seek table.  Nothing may follow. */
ps_result ps_output_finish(ps_output *output, ps_error *err);

/* Bytes that were not flushed may be lost. */
void ps_output_free(ps_output *output);

#endif
