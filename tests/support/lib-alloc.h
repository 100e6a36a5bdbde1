/*
 * lib-alloc.h - memory that is counted, and runs out when a test says so.
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

/* What happened since the last alloc_watch; blocks and bytes since ever. */
alloc_counts alloc_so_far(void);

/* Counts calls anew, and the peak from what is held now. */
void alloc_watch(void);

/*
 * From now on the `nth` call, from 1, gets no memory; with `for_ever` nor
 * does any after it.  0: all are served again.
 */
void alloc_fail(uint64_t nth, bool for_ever);

#endif
