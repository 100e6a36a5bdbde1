/*
 * error.c - fill in a ps_error, as the library does.
 *
 * SPDX-License-Identifier: MIT
 */
#include "data/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

ps_result tr_error(ps_error *err, ps_result code, const char *format, ...)
{
    va_list arguments;

    *err = (ps_error){.code = code};
    va_start(arguments, format);
    (void)vsnprintf(err->text, sizeof err->text, format, arguments);
    va_end(arguments);
    return code;
}

ps_result tr_error_errno(ps_error *err)
{
    const int number = errno;

    (void)tr_error(err, PS_ERR_IO, "%s", strerror(number));
    err->sys_errno = number;
    return PS_ERR_IO;
}
