/*
 * pause.c - what happens while there is no input: the wait for it, and the
 * signal SIGUSR1.
 *
 * The signal only sets a flag.  While we wait it is blocked but for the wait
 * itself, so that none comes between the look at the flag and the wait.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstream/pause.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/select.h>
#include <time.h>

/* A handler has nothing else to write to. */
static volatile sig_atomic_t came;

static void remember(int signal)
{
    (void)signal;
    came = 1;
}

/* Calls that the signal meets elsewhere go on as if it had not come. */
void pause_init(void)
{
    struct sigaction action = {.sa_handler = remember,
                               .sa_flags = SA_RESTART};

    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGUSR1, &action, NULL);
}

bool pause_asked(void)
{
    bool asked = came != 0;

    if (asked)
        came = 0;
    return asked;
}

static pause_end wait_with(int fd, const struct timespec *limit,
                           const sigset_t *mask)
{
    fd_set readable;
    int n;

    if (pause_asked())
        return PAUSE_ASKED;
    FD_ZERO(&readable);
    FD_SET(fd, &readable);
    n = pselect(fd + 1, &readable, NULL, NULL, limit, mask);
    if (n == 0)
        return PAUSE_IDLE;
    return n < 0 && errno == EINTR && pause_asked() ? PAUSE_ASKED
                                                    : PAUSE_INPUT;
}

pause_end pause_wait(int fd, uint64_t ms)
{
    struct timespec limit = {.tv_sec = (time_t)(ms / 1000),
                             .tv_nsec = (long)(ms % 1000) * 1000000};
    sigset_t usr1;
    sigset_t before;
    pause_end end;

    /* Read then waits, without an end to it. */
    if (fd >= FD_SETSIZE)
        return PAUSE_INPUT;
    (void)sigemptyset(&usr1);
    (void)sigaddset(&usr1, SIGUSR1);
    (void)sigprocmask(SIG_BLOCK, &usr1, &before);
    end = wait_with(fd, ms == PAUSE_FOREVER ? NULL : &limit, &before);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return end;
}
