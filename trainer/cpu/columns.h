/*
 * columns.h - column sums of a matrix.
 *
 * Threads share the columns.  Each column is summed from the first row to the
 * last, in double precision, so results do not depend on the number of threads.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CPU_COLUMNS_H
#define TR_CPU_COLUMNS_H

#include <stddef.h>

#include "model/scalar.h"

/* sums[c] = sum over r of x[r][c] + beta sums[c], where `stride` is the row
 * stride of x, and beta is 0 or 1. */
void tr_columns_sum(size_t rows, size_t columns, size_t stride,
                    const real *x, int beta, real *sums);

/* sums[c] = sum over r of x[r][c] y[r][c] + beta sums[c] */
void tr_columns_sum_products(size_t rows, size_t columns, const real *x,
                             const real *y, int beta, real *sums);

/*
 * The same over all heads, for rows of x that begin with `heads` x columns
 * numbers and are `stride` apart.  The rows of y are adjacent.
 */
void tr_columns_sum_heads(size_t rows, size_t heads, size_t columns,
                          size_t stride, const real *x, const real *y,
                          int beta, real *sums);

#endif /* TR_CPU_COLUMNS_H */
