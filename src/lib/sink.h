/*
 * sink.h - a buffered output in which records are built in place, written
 * and, if asked for, compressed on threads of its own.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_SINK_H
#define LIB_SINK_H

#include "packstream.h"

typedef struct ps_sink ps_sink;

/*
 * What is done with bytes that were reserved, in whole pieces as they were,
 * before they are written.
 */
typedef struct ps_sink_seal {
    /* Completes them; on any thread, other parts at the same time. */
    void (*complete)(void *context, unsigned char *bytes, size_t n);
    /* Sees them completed, one part after the other. */
    void (*follow)(void *context, const unsigned char *bytes, size_t n);
    void *context;
} ps_sink_seal;

typedef struct ps_sink_options {
    size_t largest;   /* the most that ps_sink_reserve will be asked for */
    uint32_t threads; /* that write and compress; 0: the caller does it */
    bool compressed;  /* to frames of zstd's seekable format... */
    int level;        /* ...of this level, */
    size_t frame;     /* for so many bytes each, at least `largest` */
    const ps_sink_seal *seal; /* copied; or NULL */
} ps_sink_options;

/* PS_ERR_MEMORY. */
ps_result ps_sink_open(ps_sink **sink, int fd, const ps_sink_options *options,
                       ps_error *err);

/*
 * Room for `n` bytes, in one piece, to be filled before the next call;
 * they count as written.  Failures are those of the bytes before them:
 * PS_ERR_IO, PS_ERR_MEMORY.
 */
ps_result ps_sink_reserve(ps_sink *sink, size_t n, unsigned char **room,
                          ps_error *err);

/*
 * Copies `n` bytes, of any number, to the output.  With a seal, all of this
 * comes before anything is reserved.  As ps_sink_reserve.
 */
ps_result ps_sink_put(ps_sink *sink, const void *data, size_t n,
                      ps_error *err);

/* Ends the frame, if frames are written. */
ps_result ps_sink_cut(ps_sink *sink, ps_error *err);

/*
 * Has what came so far written soon, without waiting for it; without threads
 * as ps_sink_flush.
 */
ps_result ps_sink_push(ps_sink *sink, ps_error *err);

/*
 * Returns when all that came was written.  Of frames only whole ones are:
 * where they end must not depend on the time.
 */
ps_result ps_sink_flush(ps_sink *sink, ps_error *err);

/*
 * The same, and what is of no whole frame is sealed, too, so that all bytes
 * so far were followed.
 */
ps_result ps_sink_settle(ps_sink *sink, ps_error *err);

/* Writes the last frame, too, and the seek table.  Nothing may follow. */
ps_result ps_sink_finish(ps_sink *sink, ps_error *err);

/* What was not flushed may be lost. */
void ps_sink_free(ps_sink *sink);

#endif
