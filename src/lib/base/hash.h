/*
 * hash.h - XXH3, in the fastest version that the processor can run.
 *
 * libxxhash chooses that at run time in calls with names of their own, which
 * Debian 12 has in the shared library, but not in the archive.  So they are
 * weak: in a program that is linked without them they are NULL.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_BASE_HASH_H
#define LIB_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>

#ifdef HAVE_XXH_DISPATCH
#define XXH_DISPATCH_DISABLE_REPLACE
#include <xxh_x86dispatch.h>
#pragma weak XXH3_64bits_dispatch
#pragma weak XXH3_64bits_update_dispatch
#endif

static inline uint64_t ps_hash(const void *data, size_t n)
{
#ifdef HAVE_XXH_DISPATCH
    if (XXH3_64bits_dispatch != NULL)
        return XXH3_64bits_dispatch(data, n);
#endif
    return XXH3_64bits(data, n);
}

/* The hash of what comes in parts; a state fails only if it is NULL. */
static inline void ps_hash_update(XXH3_state_t *state, const void *data,
                                  size_t n)
{
#ifdef HAVE_XXH_DISPATCH
    if (XXH3_64bits_update_dispatch != NULL) {
        (void)XXH3_64bits_update_dispatch(state, data, n);
        return;
    }
#endif
    (void)XXH3_64bits_update(state, data, n);
}

#endif
