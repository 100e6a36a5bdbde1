/*
 * hash.h - XXH3, using the fastest variant the processor supports.
 *
 * SPDX-License-Identifier: MIT
 *
 * libxxhash has separate functions that select the variant at run time.  In
 * Debian 12 the shared library has them, but the static library does not.  They
 * are therefore declared weak, so that they are NULL if they do not exist.
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

/* Streaming hash.  XXH3_64bits_update can fail only if `state` is NULL. */
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
