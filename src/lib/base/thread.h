/*
 * thread.h - threads that do not handle signals.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_BASE_THREAD_H
#define LIB_BASE_THREAD_H

#include <pthread.h>

#include "packstream.h"

/*
 * Starts a thread in which all signals are blocked, except signals that the
 * thread causes itself, such as SIGPIPE.  PS_OK, PS_ERR_IO.
 */
ps_result ps_thread_start(pthread_t *thread, void *(*run)(void *),
                          void *context, ps_error *err);

/* Memory of a thread: its stack, and the system's overhead. */
#define PS_THREAD_STACK_BYTES ((size_t)512 << 10)
#define PS_THREAD_BYTES (PS_THREAD_STACK_BYTES + ((size_t)32 << 10))

#endif
