/*
 * fail.h - failures in words, as the library has them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_FAIL_H
#define BERT_FAIL_H

#include <stdbool.h>

#include "packstream.h"

#if defined(__GNUC__)
#define FAIL_PRINTF(a, b) __attribute__((format(printf, a, b)))
#else
#define FAIL_PRINTF(a, b)
#endif

/* Tells a failure in `err`, if that is not NULL; returns its code. */
ps_result fail(ps_error *err, ps_result code, const char *format, ...)
    FAIL_PRINTF(3, 4);

/* PS_ERR_IO, in the words for errno. */
ps_result fail_errno(ps_error *err);

/* The exit statuses of both programs. */
enum {
    STATUS_OK = 0,
    STATUS_FAILURE = 1, /* input/output, memory or another resource */
    STATUS_USAGE = 64,  /* the command line, or it does not fit the input */
    STATUS_DATA = 65    /* the input */
};

/* That of a failure. */
int fail_status(ps_result code);

/* "PROGRAM: TEXT" on stderr, in one piece; by one thread at a time. */
void say(const char *program, const char *format, ...) FAIL_PRINTF(2, 3);

/*
 * While say holds, it prints nothing, but keeps the last text.  say_held
 * prints it, or forgets it.
 */
void say_hold(bool holds);
void say_held(bool prints);

/* "PROGRAM: WHAT: WHY"; returns the exit status. */
int say_failure(const char *program, const char *what, const ps_error *err);

#endif /* BERT_FAIL_H */
