/*
 * prefetch.h - what is soon to be read had better be in the cache.
 *
 * What another thread or the kernel wrote lies in the cache of another
 * processor: to wait for it costs more than most of what is done with it.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_BASE_PREFETCH_H
#define LIB_BASE_PREFETCH_H

#include <stddef.h>

#define PS_LINE_BYTES 64 /* of a cache */

/* `p` may be any address: a wrong one does no harm. */
static inline void ps_prefetch(const void *p)
{
#ifdef __GNUC__
    __builtin_prefetch(p);
#else
    (void)p;
#endif
}

static inline void ps_prefetch_bytes(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i += PS_LINE_BYTES)
        ps_prefetch(p + i);
}

#endif
