/*
 * text.c - input files, a line at a time, in bounded memory.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/text.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/files.h"

/* The buffer at first; it doubles when a line does not fit. */
#define FIRST_SIZE ((size_t)256 * 1024)

void text_free(text *t)
{
    text_close(t);
    free(t->buffer);
    t->buffer = NULL;
}

int text_open(text *t, const char *name)
{
    t->name = name;
    t->line = 0;
    t->begin = t->end = t->searched = 0;
    t->ended = false;
    t->fd = files_open_input(name);
    t->open = t->fd >= 0;
    return t->open ? STATUS_OK : STATUS_FAILURE;
}

void text_close(text *t)
{
    if (t->open)
        files_close_input(t->fd);
    t->open = false;
}

static bool would_wait(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 0;
}

ssize_t text_read(int fd, void *to, size_t n)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    for (;;) {
        const ssize_t got = read(fd, to, n);

        if (got >= 0)
            return got;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK)
            return -1;
        if (poll(&p, 1, -1) < 0 && errno != EINTR)
            return -1;
    }
}

static int grow(text *t)
{
    /* One more than a line: for the newline after the longest. */
    const size_t max = t->longest + 2;
    size_t size = t->size == 0 ? FIRST_SIZE : 2 * t->size;
    unsigned char *buffer;

    if (t->size >= max) {
        t->line++;
        return text_bad(t, "longer than %zu bytes", t->longest);
    }
    if (size > max)
        size = max;
    buffer = realloc(t->buffer, size);
    if (buffer == NULL) {
        message_errno("%s: line %" PRIu64, files_input_name(t->name),
                      t->line + 1);
        return STATUS_FAILURE;
    }
    t->buffer = buffer;
    t->size = size;
    return STATUS_OK;
}

/* Makes room for at least one byte, and one for a final newline. */
static int make_room(text *t)
{
    if (t->end + 1 < t->size)
        return STATUS_OK;
    if (t->begin == 0)
        return grow(t);
    memmove(t->buffer, t->buffer + t->begin, t->end - t->begin);
    t->end -= t->begin;
    t->searched -= t->begin;
    t->begin = 0;
    return STATUS_OK;
}

static int fill(text *t)
{
    int status = make_room(t);
    ssize_t n;

    if (status == STATUS_OK && would_wait(t->fd))
        status = t->on_wait(t->context);
    if (status != STATUS_OK)
        return status;
    n = text_read(t->fd, t->buffer + t->end, t->size - t->end - 1);
    if (n < 0) {
        message_errno("%s: cannot read", files_input_name(t->name));
        return STATUS_FAILURE;
    }
    t->ended = n == 0;
    t->end += (size_t)n;
    t->bytes += (uint64_t)n;
    return STATUS_OK;
}

/* The end of the line that starts at begin, or NULL if it is not here. */
static unsigned char *find_end(text *t, bool *newline)
{
    unsigned char *found = NULL;

    if (t->end > t->searched)
        found = memchr(t->buffer + t->searched, '\n',
                       t->end - t->searched);
    *newline = found != NULL;
    if (found == NULL && t->ended && t->end > t->begin) {
        /* There is room: make_room always spares a byte. */
        found = t->buffer + t->end;
        *found = '\n';
    }
    t->searched = t->end;
    return found;
}

static void give(text *t, const unsigned char *end, text_line *line)
{
    line->bytes = t->buffer + t->begin;
    line->n = (size_t)(end - line->bytes);
    t->begin += line->n + line->newline;
    if (t->begin == t->end)
        t->begin = t->end = 0;
    t->searched = t->begin;
    t->line++;
}

int text_next(text *t, text_line *line)
{
    for (;;) {
        const unsigned char *end = find_end(t, &line->newline);
        int status;

        if (end != NULL) {
            give(t, end, line);
            return STATUS_OK;
        }
        line->bytes = NULL;
        if (t->ended)
            return STATUS_OK;
        status = fill(t);
        if (status != STATUS_OK)
            return status;
    }
}

bool text_is_blank(const text_line *line)
{
    for (size_t i = 0; i < line->n; i++)
        if (line->bytes[i] != ' ' && line->bytes[i] != '\t' &&
            line->bytes[i] != '\r')
            return false;
    return true;
}

/* Column 0 stands for none. */
static int tell(const text *t, uint64_t column, const char *format,
                va_list args) MESSAGE_PRINTF(3, 0);

static int tell(const text *t, uint64_t column, const char *format,
                va_list args)
{
    char where[48] = "";
    char why[512];

    if (column > 0)
        (void)snprintf(where, sizeof where, ", column %" PRIu64, column);
    (void)vsnprintf(why, sizeof why, format, args);
    message_error("%s: line %" PRIu64 "%s: %s", files_input_name(t->name),
                  t->line, where, why);
    return STATUS_DATA;
}

int text_bad(const text *t, const char *format, ...)
{
    va_list args;
    int status;

    va_start(args, format);
    status = tell(t, 0, format, args);
    va_end(args);
    return status;
}

int text_bad_at(const text *t, uint64_t column, const char *format, ...)
{
    va_list args;
    int status;

    va_start(args, format);
    status = tell(t, column, format, args);
    va_end(args);
    return status;
}
