/*
 * rank_message.c - error messages of a run, printed by one rank for all.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run/rank_message.h"

#include <stdarg.h>
#include <stdio.h>

/* A process has one stderr, and only one thread at a time prints messages. */
static struct {
    bool hold;
    char text[4096];
} held;

void rank_message(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(held.text, sizeof held.text, format, arguments);
    va_end(arguments);
    if (!held.hold)
        rank_message_flush(true);
}

int rank_message_failure(const char *what, const ps_error *err)
{
    rank_message("%s: %s", message_name(what), err->text);
    switch (err->code) {
    case PS_ERR_ARGUMENT:
        return STATUS_USAGE;
    case PS_ERR_IO:
    case PS_ERR_MEMORY:
        return STATUS_FAILURE;
    default:
        return STATUS_DATA;
    }
}

void rank_message_hold(bool hold)
{
    held.hold = hold;
}

void rank_message_flush(bool print)
{
    if (print && held.text[0] != '\0')
        message_error("%s", held.text);
    held.text[0] = '\0';
}
