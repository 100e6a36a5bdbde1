/*
 * preload.h - for modules that LD_PRELOAD puts before the C library.
 *
 * To be included after a definition of _GNU_SOURCE.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_SUPPORT_PRELOAD_H
#define TESTS_SUPPORT_PRELOAD_H

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* REAL(name) is the C library's; ISO C has no function pointer from dlsym. */
#define REAL(name, type, ...)                                           \
    static type (*real)(__VA_ARGS__);                                   \
    do {                                                                \
        void *found = real == NULL ? dlsym(RTLD_NEXT, #name) : NULL;    \
                                                                        \
        if (real == NULL)                                               \
            memcpy(&real, &found, sizeof real);                         \
    } while (0)

#endif
