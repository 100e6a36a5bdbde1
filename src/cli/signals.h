/*
 * signals.h - what happens while there is no input: the wait for it, and the
 * signals SIGUSR1, SIGTERM and SIGINT.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

/* Waits no time for the input to go on: as long as it takes. */
#define WAIT_FOREVER UINT64_MAX

typedef enum signals_end {
    WAIT_INPUT, /* there is input, or its end, or no way to wait for it */
    WAIT_IDLE,  /* nothing came for as long as was asked */
    WAIT_ASKED, /* SIGUSR1 came */
    WAIT_STOP   /* one of those that end a job came */
} signals_end;

/* From now on SIGUSR1 does not end the process, but is remembered. */
void signals_init(void);

/* True once after SIGUSR1 came. */
bool signals_asked(void);

/*
 * From now on the first SIGTERM or SIGINT does not end the process, but is
 * remembered; a second one ends it.
 */
void signals_catch_stop(void);

/* Which of the two came, or 0. */
int signals_stopped(void);

/* Ends the process by that signal, as if it had not been caught. */
void signals_die(int signal);

/* Waits for input on `fd`, or for a signal, `ms` milliseconds at most. */
signals_end signals_wait(int fd, uint64_t ms);

#endif
