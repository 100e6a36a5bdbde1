/*
 * gelu.h - Gaussian error linear unit, in its tanh form.
 *
 * x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3), which is
 * x / (1 + exp(-2 u)): Hendrycks and Gimpel, "Gaussian Error Linear Units"
 * (2016), section 2.  The first BERT had this form.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_GELU_H
#define BERT_GELU_H

#include <stddef.h>

#include "real.h"

void bert_gelu_forward(size_t rows, size_t columns, const real *x, real *y);

/* dy becomes dx; y is computed again, so that nobody has to keep it. */
void bert_gelu_backward(size_t rows, size_t columns, const real *x,
                        real *dy, real *y);

#endif /* BERT_GELU_H */
