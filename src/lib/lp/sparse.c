/*
 * sparse.c - growing lists of entries.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lp/sparse.h"

#include <stdlib.h>
#include <string.h>

#define MIN_CAPACITY 256

void ps_entries_init(ps_entries *e, uint64_t max, ps_mem *mem)
{
    uint64_t n = ps_mem_max(max, MIN_CAPACITY);

    if (max > SIZE_MAX)
        mem->failed = true;
    *e = (ps_entries){.max = (size_t)max};
    mem->bytes = ps_mem_sum(mem->bytes, ps_mem_array(n, sizeof *e->index));
    mem->bytes = ps_mem_sum(mem->bytes, ps_mem_array(n, sizeof *e->value));
}

void ps_entries_free(ps_entries *e)
{
    free(e->index);
    free(e->value);
    *e = (ps_entries){.max = e->max};
}

bool ps_entries_reserve(ps_entries *e, size_t more)
{
    size_t capacity = e->capacity == 0 ? MIN_CAPACITY : e->capacity;
    uint32_t *index;
    double *value;

    if (more <= e->capacity - e->n)
        return true;
    if (e->max != 0 && more > e->max - e->n) {
        e->full = true;
        return false;
    }
    while (capacity - e->n < more) {
        if (capacity > SIZE_MAX / 2 / sizeof *value)
            return false;
        capacity *= 2;
    }
    if (e->max != 0 && capacity > e->max)
        capacity = e->max;

    index = realloc(e->index, capacity * sizeof *index);
    if (index == NULL)
        return false;
    e->index = index;
    value = realloc(e->value, capacity * sizeof *value);
    if (value == NULL)
        return false;
    e->value = value;
    e->capacity = capacity;
    return true;
}

bool ps_entries_append(ps_entries *to, const ps_entries *from, size_t first,
                       size_t n)
{
    if (!ps_entries_reserve(to, n))
        return false;
    memcpy(to->index + to->n, from->index + first, n * sizeof *to->index);
    memcpy(to->value + to->n, from->value + first, n * sizeof *to->value);
    to->n += n;
    return true;
}

bool ps_column_add(ps_entries *list, ps_column *column, uint32_t row,
                   double value)
{
    for (size_t k = column->first; k < list->n; k++)
        if (list->index[k] == row) {
            list->value[k] += value;
            return true;
        }
    if (!ps_entries_add(list, row, value))
        return false;
    column->n++;
    return true;
}
