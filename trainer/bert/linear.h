/*
 * linear.h - a layer y = x W^T + b, W being stored as out x in.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_LINEAR_H
#define BERT_LINEAR_H

#include <stddef.h>

#include "real.h"

typedef struct bert_linear {
    size_t in;
    size_t out;
    const real *weight;
    const real *bias;
    real *weight_gradient;
    real *bias_gradient;
} bert_linear;

void bert_linear_forward(const bert_linear *layer, size_t rows,
                         const real *x, real *y);

/* dx = dy W + beta dx */
void bert_linear_backward_input(const bert_linear *layer, size_t rows,
                                const real *dy, real beta, real *dx);

/* Adds dy^T x and the sums of dy's columns to the gradients. */
void bert_linear_backward_weight(const bert_linear *layer, size_t rows,
                                 const real *dy, const real *x);

#endif /* BERT_LINEAR_H */
