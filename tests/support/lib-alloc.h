/*
 * lib-alloc.h - an allocator that counts, and fails on request.
 *
 * The linker's --wrap sends malloc, calloc, realloc and free of the library
 * and of the test here, and with them the calls that make xxHash and
 * libzstd allocate (WRAPPED_CALLS in Makefile.am).
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_LIB_ALLOC_H
#define TESTS_LIB_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct alloc_counts {
    uint64_t calls;  /* that asked for memory */
    uint64_t failed; /* of these */
    size_t blocks;   /* held now */
    size_t bytes;    /* held now */
    size_t peak;     /* most bytes held at a time */
} alloc_counts;

/* Calls since the last alloc_watch; blocks and bytes are totals. */
alloc_counts alloc_so_far(void);

/* Restarts the count of calls, and the peak at the bytes held now. */
void alloc_watch(void);

/*
 * From now on the `nth` allocation, from 1, fails, and with `for_ever` all
 * later ones do.  0: none does.
 */
void alloc_fail(uint64_t nth, bool for_ever);

#endif
