/*
 * rank_message.h - error messages of a run, printed by one rank for all.
 *
 * When ranks fail together each has a message, but only the lowest rank's is
 * printed.  So a rank holds its last message until it knows which rank that is.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_RUN_RANK_MESSAGE_H
#define TR_RUN_RANK_MESSAGE_H

#include <stdbool.h>

#include "cli/message.h"

/* As message_error; holds the text instead after rank_message_hold(true). */
void rank_message(const char *format, ...) MESSAGE_PRINTF(1, 2);

/* "WHAT: WHY"; returns the exit status for the error. */
int rank_message_failure(const char *what, const ps_error *err);

void rank_message_hold(bool hold);

/* Prints the held message, if any, or discards it. */
void rank_message_flush(bool print);

#endif /* TR_RUN_RANK_MESSAGE_H */
