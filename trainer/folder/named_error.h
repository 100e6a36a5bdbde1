/*
 * named_error.h - prefix an error's text with a file's name.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_FOLDER_NAMED_ERROR_H
#define TR_FOLDER_NAMED_ERROR_H

#include "packstream.h"

/* Turns the text "why" into "NAME: why", cut if too long; returns the code. */
ps_result named_error(ps_error *err, const char *name);

#endif /* TR_FOLDER_NAMED_ERROR_H */
