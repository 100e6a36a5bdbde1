/*
 * interleave.h - runs every interleaving of the threads of a piece of code.
 *
 * A test includes this header and then a source file of the library, whose
 * threads become coroutines and whose locks and conditions become those of a
 * scheduler, which runs one thread at a time.  Before a thread takes a lock,
 * signals another or begins to wait, the scheduler tries every thread that can
 * run next, and every thread that a signal can reach, depth first: it copies
 * all memory, and restores the copy for the next choice.  Between these points
 * threads must not touch shared memory; the thread sanitizer checks that.
 *
 * A state seen before, with the same memory and stacks in use, is not searched
 * again, so the search ends.  It ends early when a check fails, or when no
 * thread can run although some have not ended: a wakeup was lost.
 *
 * All memory that a scenario changes must be on the stacks of its threads or
 * from interleave_alloc.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_SUPPORT_INTERLEAVE_H
#define TESTS_SUPPORT_INTERLEAVE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

/*
 * Numbered scenarios for a piece of code.  `set` selects one, in which waits
 * can also end without a wakeup if `spurious`; false if that does not apply.
 * `run` is its first thread, and ends after all others.
 */
typedef struct interleave_suite {
    size_t n;
    bool (*set)(size_t i, bool spurious);
    void (*run)(void);
} interleave_suite;

/*
 * The main function of a test.  All scenarios must succeed in every
 * interleaving, with and without spurious wakeups; and leaving out any of the
 * wakeups must make one fail.
 */
int interleave_main(const char *name, interleave_suite *suite);

/* ---- For scenarios ---- */

/* Zeroed memory, valid until the end of the run. */
void *interleave_alloc(size_t n);

/* Any number below `n`: all of them are tried. */
unsigned interleave_choose(unsigned n);

/* Another thread may run here. */
void interleave_step(const char *doing);

/* Waits until `is_so` is true; it must not change anything. */
void interleave_until(bool (*is_so)(const void *what), const void *what,
                      const char *doing);

/*
 * To be called before a wakeup that uses no condition; false if the wakeup is
 * to be left out.
 */
bool interleave_wakes(const char *place);

/* The run fails unless `is_so`. */
void interleave_check(bool is_so, const char *failure);

/* ---- Replacements for calls of the C library and ours ---- */

#define INTERLEAVE_TEXT(number) #number
#define INTERLEAVE_AT(line) __FILE__ ":" INTERLEAVE_TEXT(line)
#define INTERLEAVE_PLACE INTERLEAVE_AT(__LINE__)

ps_result interleave_start(pthread_t *thread, void *(*run)(void *),
                           void *context, ps_error *err);
int interleave_join(pthread_t thread, void **result);
int interleave_lock(pthread_mutex_t *mutex, const char *place);
int interleave_unlock(pthread_mutex_t *mutex);
int interleave_wait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                    const char *place);
int interleave_wake(pthread_cond_t *cond, bool all, const char *place);

#define ps_thread_start interleave_start
#define pthread_join interleave_join
#define pthread_mutex_init(m, a) (memset((m), 0, sizeof *(m)), 0)
#define pthread_mutex_destroy(m) ((void)(m), 0)
#define pthread_mutex_lock(m) interleave_lock((m), INTERLEAVE_PLACE)
#define pthread_mutex_unlock interleave_unlock
#define pthread_cond_init(c, a) (memset((c), 0, sizeof *(c)), 0)
#define pthread_cond_destroy(c) ((void)(c), 0)
#define pthread_cond_wait(c, m) interleave_wait((c), (m), INTERLEAVE_PLACE)
#define pthread_cond_signal(c) interleave_wake((c), false, INTERLEAVE_PLACE)
#define pthread_cond_broadcast(c) interleave_wake((c), true, INTERLEAVE_PLACE)
#define malloc interleave_alloc
#define calloc(n, size) interleave_alloc((n) * (size))
#define free(p) ((void)(p))

#endif
