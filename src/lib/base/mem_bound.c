/*
 * mem_bound.c - allocations whose sizes can be known without making them.
 *
 * SPDX-License-Identifier: MIT
 */

#include "base/mem_bound.h"

#include <stdlib.h>

void *ps_mem_alloc(ps_mem *m, uint64_t n, size_t size)
{
    void *array = NULL;

    m->bytes = ps_mem_sum(m->bytes, ps_mem_array(n, size));
    if (m->counts)
        return NULL;
    if (n <= SIZE_MAX)
        array = calloc(n > 0 ? (size_t)n : 1, size);
    if (array == NULL)
        m->failed = true;
    return array;
}
