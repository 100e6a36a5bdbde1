/*
 * shutdown.c - run a final action before a signal ends the process.
 *
 * A signal can be delivered to any thread that does not block it, including
 * threads of libraries, so it does not reliably interrupt a wait of the main
 * thread.  The handler therefore notifies a dedicated thread.  That thread
 * blocks all signals, so that the handler runs in the main thread before the
 * main thread continues: a signal that arrives before the end of the input has
 * then been recorded.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run/shutdown.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "cli/message.h"

/* The only variables that handlers write. */
static atomic_int came;
static atomic_int broken;
static sem_t bell;

/* The state of this module. */
static struct {
    pthread_mutex_t turn; /* unlocked while the action may run */
    bool runs;
    bool deferred;
    shutdown_action *last;
    void *context;
} stop = {.turn = PTHREAD_MUTEX_INITIALIZER};

/* ---- Signals ---- */

/* Each signal is caught only once.  A second signal ends the process. */
static void remember(int signal)
{
    int none = 0;

    if (atomic_compare_exchange_strong(&came, &none, signal))
        (void)sem_post(&bell);
    else
        (void)raise(signal);
}

static void remember_broken(int signal)
{
    atomic_store(&broken, signal);
}

/* Sets a handler, unless the signal was ignored at start, as with nohup. */
static void handle(int signal, void (*handler)(int), unsigned flags)
{
    struct sigaction action = {.sa_handler = handler,
                               .sa_flags = (int)(SA_RESTART | flags)};
    struct sigaction before;

    (void)sigemptyset(&action.sa_mask);
    if (sigaction(signal, NULL, &before) == 0 &&
        before.sa_handler != SIG_IGN)
        (void)sigaction(signal, &action, NULL);
}

void shutdown_by_signal(int signal)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigset_t one;

    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(signal, &action, NULL);
    (void)sigemptyset(&one);
    (void)sigaddset(&one, signal);
    (void)pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    (void)raise(signal);
}

bool shutdown_pipe_broke(void)
{
    return atomic_load(&broken) != 0;
}

/* ---- The thread ---- */

static void *wait_bell(void *unused)
{
    int status;

    (void)unused;
    while (sem_wait(&bell) != 0)
        continue;
    (void)pthread_mutex_lock(&stop.turn);
    status = stop.last(stop.context);
    if (status == STATUS_OK)
        shutdown_by_signal(atomic_load(&came));
    _exit(status);
}

bool shutdown_catch(shutdown_action *last, void *context)
{
    pthread_t thread;
    sigset_t all;
    sigset_t before;
    bool starts;

    stop.last = last;
    stop.context = context;
    (void)pthread_mutex_lock(&stop.turn);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    starts = sem_init(&bell, 0, 0) == 0 &&
             pthread_create(&thread, NULL, wait_bell, NULL) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!starts)
        return false;
    (void)pthread_detach(thread);
    stop.runs = true;
    handle(SIGTERM, remember, (unsigned)SA_RESETHAND);
    handle(SIGINT, remember, (unsigned)SA_RESETHAND);
    handle(SIGPIPE, remember_broken, 0);
    return true;
}

/* ---- Turns ---- */

void shutdown_allow(void)
{
    if (!stop.runs || stop.deferred)
        return;
    (void)pthread_mutex_unlock(&stop.turn);
    while (atomic_load(&came) != 0)
        (void)pause();
}

void shutdown_forbid(void)
{
    if (stop.runs && !stop.deferred)
        (void)pthread_mutex_lock(&stop.turn);
}

void shutdown_now(void)
{
    shutdown_allow();
    shutdown_forbid();
}

void shutdown_defer(bool deferred)
{
    stop.deferred = deferred;
}

bool shutdown_is_due(void)
{
    return stop.runs && stop.deferred && atomic_load(&came) != 0;
}
