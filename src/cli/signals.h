/*
 * signals.h - wait for input while catching SIGUSR1, SIGTERM and SIGINT.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

/* Value of `ms` in signals_wait for no timeout. */
#define WAIT_FOREVER UINT64_MAX

typedef enum signals_end {
    WAIT_INPUT, /* input, end of file, or unable to wait */
    WAIT_IDLE,  /* timeout without input */
    WAIT_ASKED, /* SIGUSR1 received */
    WAIT_STOP   /* SIGTERM or SIGINT received */
} signals_end;

/* Catches SIGUSR1, which then no longer ends the process. */
void signals_init(void);

/* True once after each SIGUSR1. */
bool signals_asked(void);

/* Catches the first SIGTERM or SIGINT; the second ends the process. */
void signals_catch_stop(void);

/* Returns the signal received, SIGTERM or SIGINT, or 0. */
int signals_stopped(void);

/* Ends the process by this signal, as if the signal had not been caught. */
void signals_die(int signal);

/* Waits up to `ms` milliseconds for input on `fd` or a signal. */
signals_end signals_wait(int fd, uint64_t ms);

#endif
