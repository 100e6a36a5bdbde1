/*
 * named_error.c - prefix an error's text with a file's name.
 *
 * SPDX-License-Identifier: MIT
 */
#include "folder/named_error.h"

#include "cli/message.h"
#include "data/error.h"

/* Longest part of each that is kept; both and ": " fit into an error. */
#define NAME_SHOWN 64
#define WHY_SHOWN 188

ps_result named_error(ps_error *err, const char *name)
{
    const ps_error why = *err;

    (void)tr_error(err, why.code, "%.*s: %.*s", NAME_SHOWN, message_name(name),
                   WHY_SHOWN, why.text);
    err->sys_errno = why.sys_errno;
    return why.code;
}
