/*
 * dropout_rows.h - zeroes some numbers, and scales the others up.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_CPU_DROPOUT_ROWS_H
#define BERT_CPU_DROPOUT_ROWS_H

#include <stddef.h>

#include "model/dropout.h"

/* y = x, dropped out; y may be x. */
void bert_dropout_apply(const bert_dropout *dropout, bert_dropout_key key,
                        size_t n, const real *x, real *y);

/* y = residual + x + bias, the latter two dropped out. */
void bert_dropout_sum(const bert_dropout *dropout, bert_dropout_key key,
                      size_t n, const real *residual, const real *x,
                      const real *bias, real *y);

/*
 * Of a row of scores, which are not negative: turns the sign of those to be
 * dropped, and drops what has been marked so.  `key` and `row` are as in
 * bert_dropout_scores().
 */
void bert_dropout_mark(const bert_dropout *dropout, bert_dropout_key key,
                       size_t row, size_t n, real *x);
void bert_dropout_marked(const bert_dropout *dropout, size_t n,
                         const real *x, real *y);

/* y = x, dropped out: rows x columns numbers at a site. */
void bert_dropout_rows(const bert_dropout *dropout, uint32_t site,
                       size_t rows, size_t columns, const real *x, real *y);

#endif /* BERT_CPU_DROPOUT_ROWS_H */
