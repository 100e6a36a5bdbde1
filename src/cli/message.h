/*
 * message.h - what the programs say to their user, always on stderr, always
 * in the form "prog: what: why".
 *
 * This folder holds what the programs share; it sees the public header and
 * nothing else of the library.  A main begins with files_init, message_init
 * and option_parse, and returns one of the statuses below.
 *
 *     options      command lines as tables, and --help from them
 *     range        "A:B", a value that several programs take
 *     files        inputs, outputs and their locks, stdin and stdout too
 *     state_file   the state of a job: found, and compared with the job
 *     atomic_file  such a file, which is replaced as a whole
 *     output_check recognises the output that a job goes on with
 *     signals      a wait for input, and signals that end a job
 *     file_set     files that appear together or not at all
 *     histogram    lengths and how many sequences have each, from lines
 *     packs        a pack stream from any place on, seeking where it can
 *     records      an output that is a stream of token records
 *     message      errors, warnings and the exit status they mean
 *     progress     the live line on a terminal
 *     report       totals as JSON
 *     sandbox      giving up rights that are not needed any more
 *     threads      how many processors there are
 *     weights      decimal numbers of which only the ratio matters
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_MESSAGE_H
#define CLI_MESSAGE_H

#include "packstream.h"

/* The exit statuses of every program; EXIT STATUS of each page lists them. */
enum {
    STATUS_OK = 0,
    STATUS_FAILURE = 1, /* input/output, memory or another resource */
    STATUS_USAGE = 64,  /* the command line */
    STATUS_DATA = 65    /* the input */
};

#if defined(__GNUC__)
#define MESSAGE_PRINTF(a, b) __attribute__((format(printf, a, b)))
#else
#define MESSAGE_PRINTF(a, b)
#endif

/* Takes the program's name, without folders, from argv[0]; keeps it. */
void message_init(const char *argv0);
const char *message_program(void);

/* Warnings are left out after message_quiet(true). */
void message_quiet(bool quiet);
void message_warning(const char *format, ...) MESSAGE_PRINTF(1, 2);

/* What was asked for with -v: "prog: TEXT". */
void message_note(const char *format, ...) MESSAGE_PRINTF(1, 2);

/*
 * Shows a line that stays until the next one, on a terminal: spaces and
 * carriage returns draw over the one before it.  A message wipes it first;
 * message_wipe does so without one, and nothing where no line stands.
 */
#define MESSAGE_COLUMNS 79
void message_line(const char *text);
void message_wipe(void);

/* "prog: TEXT"; _errno appends ": " and the words for errno. */
void message_error(const char *format, ...) MESSAGE_PRINTF(1, 2);
void message_errno(const char *format, ...) MESSAGE_PRINTF(1, 2);

/*
 * Reports a failure of the library about `what` (a file name): "prog: what:
 * why".  Returns the exit status that belongs to it.
 */
int message_failure(const char *what, const ps_error *err);

/* There is no memory, as the library says it; returns STATUS_FAILURE. */
int message_memory(void);

/* "prog: TEXT" and a hint at --help; returns STATUS_USAGE. */
int message_usage(const char *format, ...) MESSAGE_PRINTF(1, 2);

/*
 * A name from outside made fit to show: control characters and bytes beyond
 * ASCII become '?'.  Returns one of a few static buffers, used in turn.
 */
const char *message_name(const char *name);

#endif
