/*
 * sparse.c - lists of entries that grow.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lp/sparse.h"

#include <stdlib.h>

#include "base/mem_bound.h"

#define FIRST_ROOM 256

bool ps_entries_reserve(ps_entries *e, size_t more)
{
    size_t room = e->room == 0 ? FIRST_ROOM : e->room;
    uint32_t *index;
    double *value;

    if (more <= e->room - e->n)
        return true;
    if (e->max != 0 && more > e->max - e->n) {
        e->full = true;
        return false;
    }
    while (room - e->n < more) {
        if (room > SIZE_MAX / 2 / sizeof *value)
            return false;
        room *= 2;
    }
    if (e->max != 0 && room > e->max)
        room = e->max;
    index = realloc(e->index, room * sizeof *index);
    if (index == NULL)
        return false;
    e->index = index;
    value = realloc(e->value, room * sizeof *value);
    if (value == NULL)
        return false;
    e->value = value;
    e->room = room;
    return true;
}

void ps_entries_free(ps_entries *e)
{
    free(e->index);
    free(e->value);
    *e = (ps_entries){.max = e->max};
}

uint64_t ps_entries_bytes(uint64_t max)
{
    uint64_t n = ps_mem_max(max, FIRST_ROOM);

    return ps_mem_sum(ps_mem_array(n, sizeof(uint32_t)),
                      ps_mem_array(n, sizeof(double)));
}
