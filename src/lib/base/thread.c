/*
 * thread.c - threads that leave signals to the others.
 *
 * SPDX-License-Identifier: MIT
 */

#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>

#include "base/error.h"

/* The signals that are sent to the thread which causes them. */
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
        /* The system's 8 MiB are more than the stack needs. */
        (void)pthread_attr_setstacksize(&attributes, PS_THREAD_STACK_BYTES);
        /* A thread begins with the signal mask of the one that starts it. */
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
