/*
 * sparse.h - sparse vectors and matrices as growing lists of entries.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_LP_SPARSE_H
#define LIB_LP_SPARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem_bound.h"

/* Pairs of index and value in a growing list. */
typedef struct ps_entries {
    uint32_t *index; /* row, column or place */
    double *value;
    size_t n;        /* entries in use */
    size_t capacity; /* entries allocated */
    size_t max;      /* maximum of n; 0: limited by memory only */
    bool full;       /* a request exceeded `max` */
} ps_entries;

/*
 * Initialises an empty list for up to `max` entries.  Nothing is allocated yet,
 * but `mem` counts the maximum size.
 */
void ps_entries_init(ps_entries *e, uint64_t max, ps_mem *mem);
void ps_entries_free(ps_entries *e);

/* Ensures space for `more` entries.  False if out of memory or above `max`. */
bool ps_entries_reserve(ps_entries *e, size_t more);

/* Appends entries first to first + n - 1 of another list. */
bool ps_entries_append(ps_entries *to, const ps_entries *from, size_t first,
                       size_t n);

static inline bool ps_entries_add(ps_entries *e, uint32_t index, double value)
{
    if (e->n == e->capacity && !ps_entries_reserve(e, 1))
        return false;
    e->index[e->n] = index;
    e->value[e->n] = value;
    e->n++;
    return true;
}

/*
 * A column of a linear program: `n` entries of a list, starting at `first`,
 * each with row and value.  It costs one pack, or nothing if it is a slack.
 */
typedef struct ps_column {
    size_t first; /* index in the list */
    uint32_t n;   /* number of entries */
    bool slack;
} ps_column;

/* Adds `value` to the entry for `row` in the last column of the list. */
bool ps_column_add(ps_entries *list, ps_column *column, uint32_t row,
                   double value);

/*
 * A square matrix by columns.  Column j is entries start[j] to start[j + 1] -
 * 1.
 */
typedef struct ps_matrix {
    uint32_t n;    /* number of rows and of columns */
    size_t *start; /* [n + 1] */
    ps_entries entries;
} ps_matrix;

#endif
