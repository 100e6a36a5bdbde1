/*
 * rank_message.h - error messages of a run, printed by one rank for all.
 *
 * When several ranks fail together, only the message of the lowest rank is
 * printed.  Each rank therefore holds its last message until it knows which
 * rank is the lowest.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_RUN_RANK_MESSAGE_H
#define TR_RUN_RANK_MESSAGE_H

#include <stdbool.h>

#include "cli/message.h"

/* Like message_error, but only holds the text after rank_message_hold(true). */
void rank_message(const char *format, ...) MESSAGE_PRINTF(1, 2);

/* Prints "WHAT: " and the error.  Returns the exit status for the error. */
int rank_message_failure(const char *what, const ps_error *err);

void rank_message_hold(bool hold);

/* Prints the held message, if any, or discards it. */
void rank_message_flush(bool print);

#endif /* TR_RUN_RANK_MESSAGE_H */
