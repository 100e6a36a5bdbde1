/*
 * dropout_rows.h - dropout on rows: zero some values, scale up the others.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CPU_DROPOUT_ROWS_H
#define TR_CPU_DROPOUT_ROWS_H

#include <stddef.h>

#include "model/dropout.h"

/* y = dropout(x); y may be x. */
void tr_dropout_apply(const tr_dropout *dropout, tr_dropout_key key,
                      size_t n, const real *x, real *y);

/* y = residual + dropout(x + bias) */
void tr_dropout_sum(const tr_dropout *dropout, tr_dropout_key key,
                    size_t n, const real *residual, const real *x,
                    const real *bias, real *y);

/*
 * tr_dropout_mark() negates the dropped scores in a row of nonnegative scores;
 * tr_dropout_marked() zeroes them and scales the others.  `key` and `row` are
 * as in tr_dropout_scores().
 */
void tr_dropout_mark(const tr_dropout *dropout, tr_dropout_key key,
                     size_t row, size_t n, real *x);
void tr_dropout_marked(const tr_dropout *dropout, size_t n,
                       const real *x, real *y);

/* y = dropout(x), for rows x columns numbers at a site. */
void tr_dropout_rows(const tr_dropout *dropout, uint32_t site,
                     size_t rows, size_t columns, const real *x, real *y);

#endif /* TR_CPU_DROPOUT_ROWS_H */
