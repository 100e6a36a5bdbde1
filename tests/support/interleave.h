/*
 * interleave.h - every way in which the threads of a piece of code can come
 * between each other.
 *
 * A test includes this header and then a source file of the library, whose
 * threads become coroutines and whose locks and conditions become those of a
 * scheduler.  It runs one thread at a time.  Before a thread takes a lock,
 * wakes another or begins to wait, the scheduler goes through all threads that
 * could run next, and through all that a wakeup could reach, depth first: it
 * keeps a copy of all memory, and comes back to it for the next choice.  What
 * threads do in between must touch nothing that another one touches; that is
 * for the thread sanitizer to find out.
 *
 * A state that was seen before, in memory and live stacks, is not gone through
 * again, so the search ends.  It ends early where no thread can run and not all
 * have ended: a wakeup was lost; and where a check fails.
 *
 * All that a scenario changes must lie on the stacks of its threads, or in what
 * interleave_alloc gave.
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
 * Scenarios of a piece of code, by number.  `set` chooses one, for waits that
 * may end without a wakeup or not, or says that it is left out; `run` is the
 * first thread of it, and ends when all others have.
 */
typedef struct interleave_suite {
    size_t n;
    bool (*set)(size_t i, bool spurious);
    void (*run)(void);
} interleave_suite;

/*
 * The main function of a test.  All scenarios come to their ends, however
 * threads come between each other, also where conditions end waits without a
 * wakeup; and each wakeup that they came by is missed if it is left out.
 */
int interleave_main(const char *name, interleave_suite *suite);

/* ---- For scenarios ---- */

/* Memory of zeros, until the end of the run. */
void *interleave_alloc(size_t n);

/* Any number below `n`: one after the other. */
unsigned interleave_choose(unsigned n);

/* Another thread may come in here. */
void interleave_step(const char *doing);

/* Waits until it is so; `is_so` only looks. */
void interleave_until(bool (*is_so)(const void *what), const void *what,
                      const char *doing);

/*
 * Before a wakeup that is no condition's: false if it is the one to be left
 * out.
 */
bool interleave_wakes(const char *place);

/* The run has failed, if it is not so. */
void interleave_check(bool is_so, const char *failure);

/* ---- In place of the C library's and ours ---- */

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
