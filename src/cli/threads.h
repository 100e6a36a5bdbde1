/*
 * threads.h - how many threads can run at a time.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_THREADS_H
#define CLI_THREADS_H

#include <stdint.h>

#define THREADS_MAX 256

/* The processors that this process may use; from 1 to THREADS_MAX. */
uint32_t threads_available(void);

#endif
