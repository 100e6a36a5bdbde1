/*
 * signals.c - what happens while there is no input: the wait for it, and the
 * signals SIGUSR1, SIGTERM and SIGINT.
 *
 * A signal only sets a flag.  While we wait they are blocked but for the wait
 * itself, so that none comes between the look at the flag and the wait.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cli/signals.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/select.h>
#include <time.h>

/* All that the handlers write to. */
static volatile sig_atomic_t came;
static volatile sig_atomic_t stop;

/* What ends a job is not caught again: a second one, of either kind, kills. */
static void remember(int signal)
{
    if (signal == SIGUSR1)
        came = 1;
    else if (stop != 0)
        (void)raise(signal);
    else
        stop = signal;
}

/* Other system calls that the signal interrupts are restarted. */
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
        /* What another program left ignored, as nohup does, stays so. */
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

    /* pselect() cannot take it: the read waits instead, for any time. */
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
