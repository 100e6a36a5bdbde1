/*
 * sizes.h - saturating size arithmetic: an overflow yields SIZE_MAX.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_MODEL_SIZES_H
#define TR_MODEL_SIZES_H

#include <stddef.h>
#include <stdint.h>

static inline size_t tr_times(size_t a, size_t b)
{
    return b && a > SIZE_MAX / b ? SIZE_MAX : a * b;
}

static inline size_t tr_plus(size_t a, size_t b)
{
    return a > SIZE_MAX - b ? SIZE_MAX : a + b;
}

#endif /* TR_MODEL_SIZES_H */
