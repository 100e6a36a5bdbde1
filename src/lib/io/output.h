/*
 * output.h - a buffered output in which records are built in place, written
 * and, if asked for, compressed on threads of its own.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_IO_OUTPUT_H
#define LIB_IO_OUTPUT_H

#include "packstream.h"

typedef struct ps_output ps_output;

/*
 * What is done with reserved bytes before they are written.  No piece that
 * was reserved at once is divided.
 */
typedef struct ps_output_finalizer {
    /* Finalizes bytes; on any thread, and other bytes at the same time. */
    void (*finalize)(void *context, unsigned char *bytes, size_t n);
    /* Sees them finalized, in the order of the output. */
    void (*follow)(void *context, const unsigned char *bytes, size_t n);
    /* A frame ends with the bytes that were seen last; or NULL. */
    void (*end_frame)(void *context);
    void *context;
} ps_output_finalizer;

typedef struct ps_output_options {
    size_t largest;   /* the most that ps_output_reserve will be asked for */
    uint32_t threads; /* that write and compress; 0: the caller does it */
    bool compressed;  /* to frames of zstd's seekable format... */
    int level;        /* ...of this level, */
    size_t frame;     /* for so many bytes each, at least `largest` */
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
    uint64_t written;             /* bytes */
    const unsigned char *table;   /* of frames, or NULL */
    size_t table_bytes;
    const unsigned char *pending; /* finalized, but of no whole frame */
    size_t pending_bytes;
} ps_output_place;

/* A bound of its memory; with the table only if `max_frames` is given. */
uint64_t ps_output_bytes(const ps_output_options *options);

/* PS_ERR_MEMORY; of a table that is not right, PS_ERR_CORRUPT. */
ps_result ps_output_open(ps_output **output, int fd,
                         const ps_output_options *options,
                         ps_error *err);

/*
 * Gives `n` bytes in one piece, to be filled before the next call; they count
 * as written.  Failures are those of the bytes before them: PS_ERR_IO,
 * PS_ERR_MEMORY.
 */
ps_result ps_output_reserve(ps_output *output, size_t n,
                            unsigned char **bytes, ps_error *err);

/*
 * Copies any number of bytes to the output.  They are not finalized; with a
 * finalizer, no call may follow one of ps_output_reserve.  As that.
 */
ps_result ps_output_put(ps_output *output, const void *data, size_t n,
                        ps_error *err);

/* Ends the frame, if frames are written. */
ps_result ps_output_cut(ps_output *output, ps_error *err);

/*
 * Has everything so far written soon, without waiting for it; without threads
 * the same as ps_output_flush.
 */
ps_result ps_output_push(ps_output *output, ps_error *err);

/*
 * Returns when everything so far is written.  A frame is only written whole:
 * where it ends must not depend on when this is called.
 */
ps_result ps_output_flush(ps_output *output, ps_error *err);

/*
 * The same, and bytes of a frame that is not whole are finalized, too: all
 * bytes so far were followed then.
 */
ps_result ps_output_settle(ps_output *output, ps_error *err);

/*
 * As ps_output_settle; and tells where the output is.  The pointers are valid
 * until the next call.  The output that goes on must first be given what is
 * pending here.
 */
ps_result ps_output_where(ps_output *output, ps_output_place *place,
                          ps_error *err);

/* The bytes written so far; all of them after a flush. */
uint64_t ps_output_written(const ps_output *output);

/*
 * Does not write the next `n` bytes.  Only for plain bytes, and when all
 * before them are written.
 */
void ps_output_discard(ps_output *output, uint64_t n);

/* Writes the last frame, too, and the seek table.  Nothing may follow. */
ps_result ps_output_finish(ps_output *output, ps_error *err);

/* Bytes that were not flushed may be lost. */
void ps_output_free(ps_output *output);

#endif
