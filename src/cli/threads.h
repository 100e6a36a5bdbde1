/*
 * threads.h - how many threads can run at a time.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_THREADS_H
#define CLI_THREADS_H

#include <stdint.h>

/* The processors that this process may use; at least 1, at most 256. */
uint32_t threads_available(void);

#endif
