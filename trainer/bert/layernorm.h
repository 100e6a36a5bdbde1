/*
 * layernorm.h - layer norm over rows, its input being the sum of a residual
 * and a branch that has passed dropout.
 *
 * y = hat * gain + bias; hat, what the row is once it has mean 0 and variance
 * 1, and the inverse of its deviation are kept for backward.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_LAYERNORM_H
#define BERT_LAYERNORM_H

#include <stddef.h>

#include "dropout.h"
#include "real.h"

typedef struct bert_norm {
    size_t width;
    const real *gain;
    const real *bias;
    real *gain_gradient;
    real *bias_gradient;
} bert_norm;

/* What backward needs: rows x width, and a number for each row. */
typedef struct bert_norm_kept {
    real *hat;
    real *inverse;
} bert_norm_kept;

/* One row; hat[] holds the input and becomes what is kept. */
void bert_norm_row(const bert_norm *norm, real *hat, real *inverse,
                   real *y);

/* y = norm(x) */
void bert_norm_forward(const bert_norm *norm, size_t rows, const real *x,
                       const bert_norm_kept *kept, real *y);

/* y = norm(residual + dropout(branch)) */
void bert_norm_forward_sum(const bert_norm *norm, size_t rows,
                           const real *residual, const real *branch,
                           const bert_dropout *dropout, uint32_t site,
                           const bert_norm_kept *kept, real *y);

/* dx of the norm's input; adds to the gradients.  dx may be dy. */
void bert_norm_backward(const bert_norm *norm, size_t rows,
                        const bert_norm_kept *kept, const real *dy,
                        real *dx);

#endif /* BERT_LAYERNORM_H */
