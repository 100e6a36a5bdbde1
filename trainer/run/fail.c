/*
 * fail.c - failures in words, as the library has them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run/fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

ps_result fail(ps_error *err, ps_result code, const char *format, ...)
{
    va_list arguments;

    if (err == NULL)
        return code;
    *err = (ps_error){.code = code};
    va_start(arguments, format);
    (void)vsnprintf(err->text, sizeof err->text, format, arguments);
    va_end(arguments);
    return code;
}

ps_result fail_errno(ps_error *err)
{
    int number = errno;

    (void)fail(err, PS_ERR_IO, "%s", strerror(number));
    if (err != NULL)
        err->sys_errno = number;
    return PS_ERR_IO;
}

int fail_status(ps_result code)
{
    switch (code) {
    case PS_OK:
    case PS_END:
        return STATUS_OK;
    case PS_ERR_ARGUMENT:
        return STATUS_USAGE;
    case PS_ERR_IO:
    case PS_ERR_MEMORY:
        return STATUS_FAILURE;
    default:
        return STATUS_DATA;
    }
}

/* What say has to tell; there is one stderr, and so one of these. */
static struct {
    bool holds;
    char text[8192]; /* a file's name and an error's text, with room to spare */
} told;

void say(const char *program, const char *format, ...)
{
    const size_t room = sizeof told.text - 1; /* for the end of the line */
    va_list arguments;
    size_t n;

    (void)snprintf(told.text, room, "%s: ", program);
    n = strlen(told.text);
    va_start(arguments, format);
    (void)vsnprintf(told.text + n, room - n, format, arguments);
    va_end(arguments);
    (void)strcat(told.text, "\n");
    if (!told.holds)
        say_held(true);
}

void say_hold(bool holds)
{
    told.holds = holds;
}

void say_held(bool prints)
{
    if (prints)
        (void)fputs(told.text, stderr);
    told.text[0] = '\0';
}

int say_failure(const char *program, const char *what, const ps_error *err)
{
    say(program, "%s: %s", what, err->text);
    return fail_status(err->code);
}
