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

#include "base/mem_bound.h"

/* Pairs of an index and a value, in one growing list. */
typedef struct ps_entries {
    uint32_t *index;
    double *value;
    size_t n;
    size_t capacity;
    size_t max; /* 0: as many as there is memory for */
    bool full;  /* more than `max` were asked for */
} ps_entries;

/*
 * An empty list that may grow to `max` entries.  It allocates nothing yet,
 * but `mem` counts what it takes then.
 */
void ps_entries_init(ps_entries *e, uint64_t max, ps_mem *mem);
void ps_entries_free(ps_entries *e);

/*
 * Allocates space for `more` entries after the last.  False without memory,
 * and where `max` does not allow so many.
 */
bool ps_entries_reserve(ps_entries *e, size_t more);

/* Appends `n` entries of another list, from `first` on. */
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
 * A column of a linear program: `n` entries of a list, from `first`; each a
 * row and a value.  It costs one pack, or nothing when it is a slack.
 */
typedef struct ps_column {
    size_t first;
    uint32_t n;
    bool slack;
} ps_column;

/* Adds `value` to the entry of that row in the column that ends the list. */
bool ps_column_add(ps_entries *list, ps_column *column, uint32_t row,
                   double value);

/* A square matrix, by columns: entries from start[j] up to start[j + 1]. */
typedef struct ps_matrix {
    uint32_t n;
    size_t *start;
    ps_entries entries;
} ps_matrix;

#endif
