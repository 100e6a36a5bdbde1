/*
 * threads.c - number of threads that can run in parallel.
 *
 * SPDX-License-Identifier: MIT
 */

/* CPU_COUNT and sched_getaffinity are not in POSIX. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "cli/threads.h"

#include <sched.h>
#include <unistd.h>

uint32_t threads_available(void)
{
    long n = -1;
#ifdef CPU_COUNT
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) == 0)
        n = CPU_COUNT(&set);
#endif
    if (n < 0)
        n = sysconf(_SC_NPROCESSORS_ONLN);
    if (n < 1)
        return 1;
    return n > THREADS_MAX ? THREADS_MAX : (uint32_t)n;
}
