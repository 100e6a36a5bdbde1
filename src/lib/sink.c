/*
 * sink.c - a buffered output in which records are built in place.
 *
 * SPDX-License-Identifier: MIT
 */

#include "sink.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "io.h"

struct ps_sink {
    int fd;
    unsigned char *buf;
    size_t size;
    size_t used;
};

ps_result ps_sink_open(ps_sink **sink, int fd, size_t largest,
                       ps_error *err)
{
    ps_sink *s = calloc(1, sizeof *s);

    *sink = NULL;
    if (s == NULL)
        return ps_fail_memory(err);
    s->fd = fd;
    s->size = largest > PS_IO_BYTES ? largest : PS_IO_BYTES;
    s->buf = malloc(s->size);
    if (s->buf == NULL) {
        free(s);
        return ps_fail_memory(err);
    }
    ps_widen_pipe(fd);
    *sink = s;
    return PS_OK;
}

ps_result ps_sink_flush(ps_sink *s, ps_error *err)
{
    size_t used = s->used;

    s->used = 0;
    return ps_write_all(s->fd, s->buf, used, err);
}

ps_result ps_sink_reserve(ps_sink *s, size_t n, unsigned char **room,
                          ps_error *err)
{
    if (n > s->size - s->used) {
        ps_result r = ps_sink_flush(s, err);

        if (r != PS_OK)
            return r;
    }
    *room = s->buf + s->used;
    s->used += n;
    return PS_OK;
}

ps_result ps_sink_put(ps_sink *s, const void *data, size_t n, ps_error *err)
{
    ps_result r = PS_OK;

    if (n > s->size - s->used)
        r = ps_sink_flush(s, err);
    if (r != PS_OK)
        return r;
    if (n > s->size)
        return ps_write_all(s->fd, data, n, err);
    if (n > 0)
        memcpy(s->buf + s->used, data, n);
    s->used += n;
    return PS_OK;
}

void ps_sink_free(ps_sink *s)
{
    if (s == NULL)
        return;
    free(s->buf);
    free(s);
}
