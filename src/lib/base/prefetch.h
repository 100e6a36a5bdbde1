/*
 * prefetch.h - cache prefetch.
 *
 * SPDX-License-Identifier: MIT
 *
 * Bytes that another thread or the kernel wrote are in the cache of another
 * processor.  Waiting for these bytes takes longer than most of the work on
 * them.
 */

#ifndef LIB_BASE_PREFETCH_H
#define LIB_BASE_PREFETCH_H

#include <stddef.h>

#define PS_LINE_BYTES 64 /* cache line */

/* `p` can be any address, even an invalid address. */
static inline void ps_prefetch(const void *p)
{
#ifdef __GNUC__
    __builtin_prefetch(p);
#else
    (void)p;
#endif
}

/* Fetches pairs of cache lines, since processors transfer them in pairs. */
static inline void ps_prefetch_bytes(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i += 2 * PS_LINE_BYTES) {
        ps_prefetch(p + i);
        ps_prefetch(p + i + PS_LINE_BYTES);
    }
}

#endif
