/*
 * output.h - buffered output with blocks that are built in place and written,
 * or compressed and written, on threads.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_IO_OUTPUT_H
#define LIB_IO_OUTPUT_H

#include "packstream.h"

typedef struct ps_output ps_output;

/*
 * Called for each committed block before it is written, for example to fill in
 * checksums.
 */
typedef struct ps_output_finalizer {
    /* Runs on any thread, concurrently for different blocks. */
    void (*finalize)(void *context, unsigned char *block);
    /* Runs in output order, after finalize. */
    void (*follow)(void *context, const unsigned char *block);
    void *context;
} ps_output_finalizer;

typedef struct ps_output_options {
    size_t largest;   /* maximum size of a committed block, bytes */
    uint32_t threads; /* threads that compress and write; 0: the caller's */
    bool compressed;  /* write zstd's seekable format */
    int level;        /* zstd level, if compressed */
    uint32_t max_frames; /* maximum number of frames; 0: no limit */
    const ps_output_finalizer *finalizer; /* copied; NULL: none */

    ps_write_hook *write; /* replaces writes to `fd`; NULL: none */
    void *write_context;

    /* The three members of ps_output_place to resume from, or zeros. */
    uint64_t written;           /* bytes of output so far */
    const unsigned char *table; /* seek table of the frames; NULL if none */
    size_t table_bytes;         /* size of `table` */
} ps_output_options;

/* Position of an output, at which another output can resume. */
typedef struct ps_output_place {
    uint64_t written;           /* bytes of output so far */
    const unsigned char *table; /* seek table; NULL if there are no frames */
    size_t table_bytes;         /* size of `table` */
} ps_output_place;

/*
 * Upper bound on the memory of an output, in bytes.  Includes the seek table
 * only if max_frames is set.
 */
uint64_t ps_output_bytes(const ps_output_options *options);

/*
 * Creates an output that writes to `fd`.  `options` is copied.
 * PS_OK, PS_ERR_ARGUMENT (zstd level), _MEMORY, _CORRUPT (options->table does
 * not match).
 */
ps_result ps_output_open(ps_output **output, int fd,
                         const ps_output_options *options,
                         ps_error *err);

/*
 * Returns the memory of the next block, `largest` bytes.  It must be filled and
 * committed before any other call.  If bytes were added by ps_output_put, call
 * ps_output_cut first.
 */
unsigned char *ps_output_block(ps_output *output);

/*
 * Ends the block of ps_output_block, which has `n` bytes.  The block is
 * finalized and, if `keep` is set, written; in compressed output it becomes one
 * frame.  The result can be the failure of an earlier block.  PS_OK,
 * PS_ERR_IO, PS_ERR_MEMORY and the results of the write hook.
 */
ps_result ps_output_commit(ps_output *output, size_t n, bool keep,
                           ps_error *err);

/*
 * Copies bytes to the output, without finalizing them.  Results as
 * ps_output_commit.
 */
ps_result ps_output_put(ps_output *output, const void *data, size_t n,
                        ps_error *err);

/*
 * Ends the current block of bytes added by ps_output_put.  In compressed output
 * this also ends the frame.
 */
ps_result ps_output_cut(ps_output *output, ps_error *err);

/* Starts writing all ended blocks, without waiting. */
ps_result ps_output_push(ps_output *output, ps_error *err);

/* Waits until everything so far is written. */
ps_result ps_output_flush(ps_output *output, ps_error *err);

/*
 * Flushes the output and returns its position.  The pointers in the position
 * are valid until the next call.
 */
ps_result ps_output_where(ps_output *output, ps_output_place *place,
                          ps_error *err);

/* Bytes written so far.  Complete after a flush. */
uint64_t ps_output_written(const ps_output *output);

/* Flushes and writes the seek table.  Nothing may be added afterwards. */
ps_result ps_output_finish(ps_output *output, ps_error *err);

/* Frees the output.  Bytes that were not flushed can be lost. */
void ps_output_free(ps_output *output);

#endif
