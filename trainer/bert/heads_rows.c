/*
 * heads_rows.c - rows of the encoder's output, picked out and put back.
 *
 * SPDX-License-Identifier: MIT
 */
#include "heads.h"

#include <string.h>

void bert_gather_rows(size_t n, size_t width, const int32_t *index,
                      const real *x, real *rows)
{
    for (size_t i = 0; i < n; i++)
        memcpy(rows + i * width, x + (size_t)index[i] * width,
               width * sizeof *x);
}

/* By one thread, in order: rows may be named more than once. */
void bert_scatter_rows(size_t n, size_t width, const int32_t *index,
                       const real *rows, real *x)
{
    for (size_t i = 0; i < n; i++) {
        real *const to = x + (size_t)index[i] * width;

        for (size_t j = 0; j < width; j++)
            to[j] += rows[i * width + j];
    }
}
