/*
 * thread.h - threads that leave signals to the others.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_BASE_THREAD_H
#define LIB_BASE_THREAD_H

#include <pthread.h>

#include "packstream.h"

/*
 * Starts a thread that blocks all signals but those which it causes itself,
 * such as SIGPIPE.  PS_ERR_IO.
 */
ps_result ps_thread_start(pthread_t *thread, void *(*run)(void *),
                          void *context, ps_error *err);

/* The memory of a thread: its stack, and what the system adds to it. */
#define PS_THREAD_STACK_BYTES ((size_t)512 << 10)
#define PS_THREAD_BYTES (PS_THREAD_STACK_BYTES + ((size_t)32 << 10))

#endif
