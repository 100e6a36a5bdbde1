/*
 * sparse.h - sparse vectors and matrices: lists of entries that grow.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_LP_SPARSE_H
#define LIB_LP_SPARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Pairs of an index and a value, in one growing list. */
typedef struct ps_entries {
    uint32_t *index;
    double *value;
    size_t n;
    size_t room;
    size_t max; /* 0: as many as there is memory for */
    bool full;   /* more were asked for */
} ps_entries;

/*
 * Makes room for `more` entries behind the last.  False without memory, and
 * where there may be no more.
 */
bool ps_entries_reserve(ps_entries *e, size_t more);
void ps_entries_free(ps_entries *e);

/*
 * The most that a list takes of so many entries, but for what it was while it
 * grows.
 */
uint64_t ps_entries_bytes(uint64_t max);

/* A square matrix, by columns: entries from start[j] up to start[j + 1]. */
typedef struct ps_matrix {
    uint32_t n;
    size_t *start;
    ps_entries entries;
} ps_matrix;

#endif
