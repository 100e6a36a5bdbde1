/*
 * error.h - fill in a ps_error, as the library does.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_DATA_ERROR_H
#define TR_DATA_ERROR_H

#include "cli/message.h"
#include "packstream.h"

/* Fills in `err` and returns `code`. */
ps_result tr_error(ps_error *err, ps_result code, const char *format, ...)
    MESSAGE_PRINTF(3, 4);

/* Fills in `err` with PS_ERR_IO and the text of errno. */
ps_result tr_error_errno(ps_error *err);

#endif /* TR_DATA_ERROR_H */
