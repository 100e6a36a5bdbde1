/*
 * text.h - input files, a line at a time, in bounded memory.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_TEXT_H
#define TOKCAT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/message.h"

/* What is called when the input makes us wait; returns an exit status. */
typedef int text_wait_hook(void *context);

typedef struct text {
    /* Set by who makes it; all else starts as 0. */
    size_t longest; /* most bytes of a line */
    text_wait_hook *on_wait;
    void *context;

    bool open;
    int fd;
    const char *name; /* as the user gave it */
    uint64_t line;    /* number of the line given last, from 1 */
    uint64_t bytes;   /* read from all files */
    unsigned char *buffer;
    size_t size;
    size_t begin; /* what is read and not yet given lies in between */
    size_t end;
    size_t searched; /* no newline between begin and here */
    bool ended;
} text;

/*
 * A line.  bytes[n] can be read and is a newline even if the file ends
 * without one; `newline` tells whether it stands there in the file.
 */
typedef struct text_line {
    const unsigned char *bytes; /* NULL after the last line */
    size_t n;                   /* without the newline */
    bool newline;
} text_line;

void text_free(text *t);

/* Opens the next file; `name` NULL or "-" is stdin. */
int text_open(text *t, const char *name);
void text_close(text *t);

/*
 * The next line; it lives until the next call.  As text_open, returns an
 * exit status, after a message if not STATUS_OK.
 */
int text_next(text *t, text_line *line);

/* True for a line of nothing but blanks. */
bool text_is_blank(const text_line *line);

/*
 * Says "prog: FILE: line N: why", the second with ", column C" counted from
 * 1; returns STATUS_DATA.
 */
int text_bad(const text *t, const char *format, ...) MESSAGE_PRINTF(2, 3);
int text_bad_at(const text *t, uint64_t column, const char *format, ...)
    MESSAGE_PRINTF(3, 4);

/* read(2), restarted after signals; waits if the descriptor does not. */
ssize_t text_read(int fd, void *to, size_t n);

#endif
