/*
 * mem_bound.c - allocations whose size can be computed in advance, and growing
 * arrays.
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

void *ps_array_grow(void *array, size_t *capacity, size_t needed, size_t min,
                    size_t size)
{
    size_t wanted = *capacity == 0 ? min : *capacity;

    if (array != NULL && needed <= *capacity)
        return array;
    while (wanted < needed) {
        if (wanted > SIZE_MAX / 2)
            return NULL;
        wanted *= 2;
    }
    if (wanted > SIZE_MAX / size)
        return NULL;
    array = realloc(array, wanted * size);
    if (array != NULL)
        *capacity = wanted;
    return array;
}
