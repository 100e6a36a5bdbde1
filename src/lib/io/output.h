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
 * What is done with bytes that were reserved, in whole pieces as they were,
 * before they are written.
 */
typedef struct ps_output_seal {
    /* Completes them; on any thread, other parts at the same time. */
    void (*complete)(void *context, unsigned char *bytes, size_t n);
    /* Sees them completed, one part after the other. */
    void (*follow)(void *context, const unsigned char *bytes, size_t n);
    void *context;
} ps_output_seal;

typedef struct ps_output_options {
    size_t largest;   /* the most that ps_output_reserve will be asked for */
    uint32_t threads; /* that write and compress; 0: the caller does it */
    bool compressed;  /* to frames of zstd's seekable format... */
    int level;        /* ...of this level, */
    size_t frame;     /* for so many bytes each, at least `largest` */
    uint32_t max_frames; /* that there may be; 0: no limit */
    const ps_output_seal *seal; /* copied; or NULL */

    /* To go on where another sink was; else zeros. */
    uint64_t written;           /* bytes of the output */
    const unsigned char *table; /* of the frames in them, or NULL */
    size_t table_bytes;
} ps_output_options;

/* Where a sink is, so that another one can go on from there. */
typedef struct ps_output_place {
    uint64_t written;             /* bytes */
    const unsigned char *table;   /* of frames, or NULL */
    size_t table_bytes;
    const unsigned char *pending; /* sealed, but of no whole frame */
    size_t pending_bytes;
} ps_output_place;

/* The most memory that it takes; the table only if `max_frames` is given. */
uint64_t ps_output_bytes(const ps_output_options *options);

/* PS_ERR_MEMORY; of a table that is not right, PS_ERR_CORRUPT. */
ps_result ps_output_open(ps_output **output, int fd,
                         const ps_output_options *options,
                         ps_error *err);

/*
 * Room for `n` bytes, in one piece, to be filled before the next call;
 * they count as written.  Failures are those of the bytes before them:
 * PS_ERR_IO, PS_ERR_MEMORY.
 */
ps_result ps_output_reserve(ps_output *output, size_t n, unsigned char **room,
                            ps_error *err);

/*
 * Copies `n` bytes, of any number, to the output.  With a seal, all of this
 * comes before anything is reserved.  As ps_output_reserve.
 */
ps_result ps_output_put(ps_output *output, const void *data, size_t n,
                        ps_error *err);

/* Ends the frame, if frames are written. */
ps_result ps_output_cut(ps_output *output, ps_error *err);

/*
 * Has what came so far written soon, without waiting for it; without threads
 * as ps_output_flush.
 */
ps_result ps_output_push(ps_output *output, ps_error *err);

/*
 * Returns when all that came was written.  Of frames only whole ones are:
 * where they end must not depend on the time.
 */
ps_result ps_output_flush(ps_output *output, ps_error *err);

/*
 * The same, and what is of no whole frame is sealed, too, so that all bytes
 * so far were followed.
 */
ps_result ps_output_settle(ps_output *output, ps_error *err);

/*
 * As ps_output_settle; and tells where the output is.  The pointers are valid
 * until the next call.  What is pending is to be put into the sink that goes
 * on, before anything else.
 */
ps_result ps_output_where(ps_output *output, ps_output_place *place,
                          ps_error *err);

/* The bytes of the output when all that came is written. */
uint64_t ps_output_written(const ps_output *output);

/*
 * The next `n` bytes that come are not written.  Not compressed ones, and
 * only when all that came before is.
 */
void ps_output_discard(ps_output *output, uint64_t n);

/* Writes the last frame, too, and the seek table.  Nothing may follow. */
ps_result ps_output_finish(ps_output *output, ps_error *err);

/* What was not flushed may be lost. */
void ps_output_free(ps_output *output);

#endif
