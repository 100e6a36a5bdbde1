/*
 * error.c - result descriptions, and filling in a ps_error.
 *
 * SPDX-License-Identifier: MIT
 */

#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *ps_result_text(ps_result code)
{
    switch (code) {
#define RESULT_CASE(code, text)                                         \
    case code:                                                          \
        return text;
        PS_RESULTS(RESULT_CASE)
#undef RESULT_CASE
    }
    return "unknown result";
}

ps_result ps_fail(ps_error *err, ps_result code, const char *format, ...)
{
    va_list args;

    if (err == NULL)
        return code;
    err->code = code;
    err->sys_errno = 0;
    va_start(args, format);
    (void)vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    /* strerror_r can return text in any language and encoding. */
    for (char *c = err->text; *c != '\0'; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    return code;
}

ps_result ps_fail_errno(ps_error *err, const char *what)
{
    int saved = errno;
    char reason[128];

    if (strerror_r(saved, reason, sizeof reason) != 0)
        (void)snprintf(reason, sizeof reason, "error %d", saved);
    ps_fail(err, PS_ERR_IO, "%s: %s", what, reason);
    if (err != NULL)
        err->sys_errno = saved;
    return PS_ERR_IO;
}

ps_result ps_fail_memory(ps_error *err)
{
    return ps_fail(err, PS_ERR_MEMORY, "out of memory");
}

ps_result ps_fail_state(ps_error *err)
{
    return ps_fail(err, PS_ERR_CORRUPT, "the state is damaged: remove it and "
                   "the output to start again");
}
