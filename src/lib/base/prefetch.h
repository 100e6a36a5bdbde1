/*
 * prefetch.h - asking for bytes before they are read.
 *
 * Bytes that another thread or the kernel wrote lie in the cache of another
 * processor; waiting for them costs more than most of what is done with them.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_BASE_PREFETCH_H
#define LIB_BASE_PREFETCH_H

#include <stddef.h>

#define PS_LINE_BYTES 64 /* of a cache */

/* `p` may be any address, even a wrong one. */
static inline void ps_prefetch(const void *p)
{
#ifdef __GNUC__
    __builtin_prefetch(p);
#else
    (void)p;
#endif
}

/* Lines come in pairs. */
static inline void ps_prefetch_bytes(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i += 2 * PS_LINE_BYTES) {
        ps_prefetch(p + i);
        ps_prefetch(p + i + PS_LINE_BYTES);
    }
}

#endif
