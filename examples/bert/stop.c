/*
 * stop.c - SIGTERM and SIGINT, which end training after a whole step.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stop.h"

#include <signal.h>
#include <stddef.h>

/* A handler has nothing else to write to. */
static volatile sig_atomic_t came;

static void remember(int signal)
{
    came = signal;
}

/* What another program left ignored, as nohup does, stays so. */
static void catch_once(int signal)
{
    struct sigaction action = {.sa_handler = remember,
                               .sa_flags = (int)(SA_RESTART | SA_RESETHAND)};
    struct sigaction before;

    (void)sigemptyset(&action.sa_mask);
    if (sigaction(signal, NULL, &before) == 0 &&
        before.sa_handler != SIG_IGN)
        (void)sigaction(signal, &action, NULL);
}

void stop_catch(void)
{
    catch_once(SIGTERM);
    catch_once(SIGINT);
}

int stop_came(void)
{
    return came;
}

void stop_die(int signal)
{
    struct sigaction action = {.sa_handler = SIG_DFL};

    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(signal, &action, NULL);
    (void)raise(signal);
}
