/*
 * thread.c - threads that do not handle signals.
 *
 * SPDX-License-Identifier: MIT
 */

#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>

#include "base/error.h"

/* Signals that are delivered to the thread that causes them. */
static const int own_signals[] = {SIGPIPE, SIGXFSZ, SIGSEGV, SIGBUS,
                                  SIGFPE,  SIGILL,  SIGABRT, SIGSYS};

ps_result ps_thread_start(pthread_t *thread, void *(*run)(void *),
                          void *context, ps_error *err)
{
    pthread_attr_t attributes;
    sigset_t blocked;
    sigset_t before;
    int failure = pthread_attr_init(&attributes);

    (void)sigfillset(&blocked);
    for (size_t i = 0; i < sizeof own_signals / sizeof own_signals[0]; i++)
        (void)sigdelset(&blocked, own_signals[i]);
    if (failure == 0) {
        /* The system's default, 8 MiB, is much more than needed. */
        (void)pthread_attr_setstacksize(&attributes, PS_THREAD_STACK_BYTES);
        /* A new thread inherits the signal mask of its creator. */
        (void)pthread_sigmask(SIG_SETMASK, &blocked, &before);
        failure = pthread_create(thread, &attributes, run, context);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        (void)pthread_attr_destroy(&attributes);
    }
    if (failure == 0)
        return PS_OK;
    errno = failure;
    return ps_fail_errno(err, "cannot start a thread");
}
