/*
 * signals.c - wait for input while catching SIGUSR1, SIGTERM and SIGINT.
 *
 * Handlers only set a flag.  While the process waits, the signals are blocked
 * except inside pselect, so that no signal is missed between the test of the
 * flags and the wait.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cli/signals.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/select.h>
#include <time.h>

/* Written by the handlers. */
static volatile sig_atomic_t came;
static volatile sig_atomic_t stop;

/*
 * SIGTERM and SIGINT are caught only once.  The second signal, whichever of the
 * two it is, ends the process.
 */
static void remember(int signal)
{
    if (signal == SIGUSR1)
        came = 1;
    else if (stop != 0)
        (void)raise(signal);
    else
        stop = signal;
}

/* SA_RESTART: other system calls continue after the signal. */
void signals_init(void)
{
    struct sigaction action = {.sa_handler = remember,
                               .sa_flags = SA_RESTART};

    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGUSR1, &action, NULL);
}

bool signals_asked(void)
{
    bool asked = came != 0;

    if (asked)
        came = 0;
    return asked;
}

void signals_catch_stop(void)
{
    static const int signals[] = {SIGTERM, SIGINT};
    struct sigaction action = {.sa_handler = remember,
                               .sa_flags = (int)(SA_RESTART | SA_RESETHAND)};
    struct sigaction before;

    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        /* A signal ignored by the parent, as with nohup, stays ignored. */
        if (sigaction(signals[i], NULL, &before) == 0 &&
            before.sa_handler != SIG_IGN)
            (void)sigaction(signals[i], &action, NULL);
}

int signals_stopped(void)
{
    return stop;
}

void signals_die(int signal)
{
    struct sigaction action = {.sa_handler = SIG_DFL};

    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(signal, &action, NULL);
    (void)raise(signal);
}

signals_end signals_wait(int fd, uint64_t ms)
{
    struct timespec limit = {.tv_sec = (time_t)(ms / 1000),
                             .tv_nsec = (long)(ms % 1000) * 1000000};
    bool signalled;
    signals_end end = WAIT_INPUT;
    sigset_t signals;
    sigset_t before;
    fd_set readable;

    /* The fd does not fit an fd_set: skip the wait; the read will block. */
    if (fd >= FD_SETSIZE)
        return WAIT_INPUT;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGUSR1);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &signals, &before);
    signalled = stop != 0 || came != 0;
    if (!signalled) {
        int n;

        FD_ZERO(&readable);
        FD_SET(fd, &readable);
        n = pselect(fd + 1, &readable, NULL, NULL,
                    ms == WAIT_FOREVER ? NULL : &limit, &before);
        signalled = n < 0 && errno == EINTR;
        if (n == 0)
            end = WAIT_IDLE;
    }
    if (signalled && stop != 0)
        end = WAIT_STOP;
    else if (signalled && signals_asked())
        end = WAIT_ASKED;
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return end;
}
