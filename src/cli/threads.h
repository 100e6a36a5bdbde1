/*
 * threads.h - number of threads that can run in parallel.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_THREADS_H
#define CLI_THREADS_H

#include <stdint.h>

#define THREADS_MAX 256

/* Number of processors available to this process, from 1 to THREADS_MAX. */
uint32_t threads_available(void);

#endif
