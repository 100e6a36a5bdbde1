/*
 * sink.h - a buffered output in which records are built in place.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_SINK_H
#define LIB_SINK_H

#include "packstream.h"

typedef struct ps_sink ps_sink;

/* `largest` is the most that ps_sink_reserve will be asked for. */
ps_result ps_sink_open(ps_sink **sink, int fd, size_t largest,
                       ps_error *err);

/*
 * Room for `n` bytes, in one piece, to be filled before the next call;
 * they count as written.  PS_OK, PS_ERR_IO.
 */
ps_result ps_sink_reserve(ps_sink *sink, size_t n, unsigned char **room,
                          ps_error *err);

/* Copies `n` bytes, of any number, to the output. */
ps_result ps_sink_put(ps_sink *sink, const void *data, size_t n,
                      ps_error *err);

ps_result ps_sink_flush(ps_sink *sink, ps_error *err);

/* Does not flush. */
void ps_sink_free(ps_sink *sink);

#endif
