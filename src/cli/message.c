/*
 * message.c - messages on stderr.
 *
 * Each message is formatted in one buffer and written with a single call, so
 * that messages of several programs in a pipeline do not mix within a line.
 * The whole line is made printable, so that external text cannot send control
 * sequences to the terminal even if a caller forgot message_name.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cli/message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define LINE_BYTES 4096
#define NAME_BYTES 1024
#define NAME_BUFFERS 4

/* Global, because messages are printed from everywhere. */
static struct {
    const char *program; /* name without directories */
    bool quiet;
    bool line; /* a line printed by message_line is on screen */
} state = {"packstream", false, false};

void message_init(const char *argv0)
{
    const char *slash;

    if (argv0 == NULL || *argv0 == '\0')
        return;
    slash = strrchr(argv0, '/');
    state.program = slash == NULL ? argv0 : slash + 1;
    /* libtool adds this prefix to programs run from the build tree. */
    if (strncmp(state.program, "lt-", 3) == 0)
        state.program += 3;
}

const char *message_program(void)
{
    return state.program;
}

void message_quiet(bool quiet)
{
    state.quiet = quiet;
}

/* Leaves the cursor at column 0, so that other output overwrites the line. */
void message_line(const char *text)
{
    (void)fprintf(stderr, "\r%-*.*s\r", MESSAGE_COLUMNS, MESSAGE_COLUMNS,
                  text);
    state.line = true;
}

void message_wipe(void)
{
    if (state.line)
        message_line("");
    state.line = false;
}

static char printable(char c)
{
    return c >= ' ' && c <= '~' ? c : '?';
}

static void say(const char *reason, const char *format, va_list args)
    MESSAGE_PRINTF(2, 0);

/* Prints "prog: TEXT: REASON", or "prog: TEXT" if `reason` is NULL. */
static void say(const char *reason, const char *format, va_list args)
{
    char text[LINE_BYTES];
    char line[2 * LINE_BYTES];
    char *end = line;

    if (vsnprintf(text, sizeof text, format, args) < 0)
        text[0] = '\0';
    (void)snprintf(line, sizeof line - 1, "%.256s: %s%s%s", state.program,
                   text, reason == NULL ? "" : ": ",
                   reason == NULL ? "" : reason);
    for (; *end != '\0'; end++)
        *end = printable(*end);
    end[0] = '\n';
    end[1] = '\0';
    message_wipe();
    (void)fputs(line, stderr);
}

void message_note(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(NULL, format, args);
    va_end(args);
}

void message_warning(const char *format, ...)
{
    va_list args;

    if (state.quiet)
        return;
    va_start(args, format);
    say(NULL, format, args);
    va_end(args);
}

void message_error(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(NULL, format, args);
    va_end(args);
}

void message_errno(const char *format, ...)
{
    int saved = errno;
    va_list args;

    va_start(args, format);
    say(strerror(saved), format, args);
    va_end(args);
}

int message_usage(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(NULL, format, args);
    va_end(args);
    message_error("try '%s --help'", state.program);
    return STATUS_USAGE;
}

int message_memory(void)
{
    message_error("%s", ps_result_text(PS_ERR_MEMORY));
    return STATUS_FAILURE;
}

int message_failure(const char *what, const ps_error *err)
{
    const char *why =
        err->text[0] != '\0' ? err->text : ps_result_text(err->code);

    message_error("%s: %s", message_name(what), why);
    /* Usage and data errors have their own exit statuses. */
    switch (err->code) {
    case PS_ERR_ARGUMENT:
        return STATUS_USAGE;
    case PS_ERR_MAGIC:
    case PS_ERR_UNSUPPORTED:
    case PS_ERR_CORRUPT:
    case PS_ERR_TRUNCATED:
    case PS_ERR_LIMIT:
    case PS_ERR_RANGE:
    case PS_ERR_OVERLONG:
    case PS_ERR_EMPTY:
        return STATUS_DATA;
    case PS_OK:
    case PS_END:
    case PS_ERR_MEMORY:
    case PS_ERR_IO:
        break;
    }
    return STATUS_FAILURE;
}

const char *message_name(const char *name)
{
    static char buffers[NAME_BUFFERS][NAME_BYTES];
    static unsigned turn;
    char *shown = buffers[turn++ % NAME_BUFFERS];
    size_t length = strlen(name);
    size_t i = 0;

    /* Keep the end of a long path, which identifies the file better. */
    if (length >= NAME_BYTES)
        name += length - (NAME_BYTES - 1);
    for (; name[i] != '\0'; i++)
        shown[i] = printable(name[i]);
    shown[i] = '\0';
    if (length >= NAME_BYTES)
        memcpy(shown, "...", 3);
    return shown;
}
