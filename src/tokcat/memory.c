/*
 * memory.c - telling jansson's lack of memory from broken JSON.
 *
 * Some of jansson's failures for want of memory look like faults of the
 * text.  It allocates through functions of ours, which remember a failure.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/memory.h"

#include <jansson.h>
#include <stdlib.h>

/* Static because jansson passes its allocator no context. */
static bool ran_out;

static void *watched_malloc(size_t size)
{
    void *p = malloc(size);

    if (p == NULL)
        ran_out = true;
    return p;
}

void memory_watch(void)
{
    json_set_alloc_funcs(watched_malloc, free);
}

bool memory_ran_out(void)
{
    return ran_out;
}
