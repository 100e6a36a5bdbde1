/*
 * message.h - messages on stderr, in the form "prog: what: why".
 *
 * This directory contains what the programs share on the command line and the
 * terminal.  A main function calls files_init, message_init and option_parse
 * first, and returns one of the exit statuses below.
 *
 *     ids           a set of sequence ids
 *     message       errors, warnings and exit statuses
 *     options       option tables, parsing and --help
 *     pattern       output names with %d for the rank
 *     progress      the progress line on a terminal
 *     range         a range of records, "A:B"
 *     report        totals as JSON; formatting of numbers
 *     signals       wait for input; catch signals that end a job
 *     threads       number of available processors
 *     weights       exact ratios of decimal numbers
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_MESSAGE_H
#define CLI_MESSAGE_H

#include "packstream.h"

/* Exit statuses of all programs, as in EXIT STATUS of each manual page. */
enum {
    STATUS_OK = 0,
    STATUS_FAILURE = 1, /* I/O error, out of memory, or another resource */
    STATUS_USAGE = 64,  /* invalid command line */
    STATUS_DATA = 65    /* invalid input */
};

#if defined(__GNUC__)
#define MESSAGE_PRINTF(a, b) __attribute__((format(printf, a, b)))
#else
#define MESSAGE_PRINTF(a, b)
#endif

/*
 * Sets the program's name to the last component of argv[0], which must stay
 * valid.
 */
void message_init(const char *argv0);
const char *message_program(void);

/* Suppresses warnings from now on, or prints them again. */
void message_quiet(bool quiet);
void message_warning(const char *format, ...) MESSAGE_PRINTF(1, 2);

/* Prints "prog: TEXT", for output requested by -v. */
void message_note(const char *format, ...) MESSAGE_PRINTF(1, 2);

/*
 * Shows a line on the terminal until the next line replaces it.  The next
 * message erases it; message_wipe erases it without a message.  `text` is cut
 * to MESSAGE_COLUMNS bytes.
 */
#define MESSAGE_COLUMNS 79
void message_line(const char *text);
void message_wipe(void);

/* Prints "prog: TEXT". message_errno appends ": " and strerror(errno). */
void message_error(const char *format, ...) MESSAGE_PRINTF(1, 2);
void message_errno(const char *format, ...) MESSAGE_PRINTF(1, 2);

/*
 * Reports a library error as "prog: WHAT: WHY", where `what` is usually a file
 * name.  Returns the corresponding exit status.
 */
int message_failure(const char *what, const ps_error *err);

/*
 * Reports that memory is exhausted, with the library's text for it; returns
 * STATUS_FAILURE.
 */
int message_memory(void);

/* Prints "prog: TEXT" and a hint to try --help; returns STATUS_USAGE. */
int message_usage(const char *format, ...) MESSAGE_PRINTF(1, 2);

/*
 * Makes a name printable: control characters and non-ASCII bytes become '?'.
 * Returns one of a few static buffers, which are reused in turn.
 */
const char *message_name(const char *name);

#endif
