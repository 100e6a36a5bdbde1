/*
 * gelu.c - Gaussian error linear unit, in its tanh form.
 *
 * SPDX-License-Identifier: MIT
 */
#include "gelu.h"

#include "vector.h"

#define CUBIC ((real)0.044715)
#define TWICE_ROOT ((real)1.5957691216057307117597842397375) /* 2 sqrt(2/pi) */

static inline real half(real x)
{
    return 1 / (1 + bert_exp(-TWICE_ROOT * (x + CUBIC * x * x * x)));
}

BERT_VECTORS
static void forward_row(size_t n, const real *restrict x, real *restrict y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * half(x[i]);
}

BERT_VECTORS
static void backward_row(size_t n, const real *restrict x,
                         real *restrict dy, real *restrict y)
{
    for (size_t i = 0; i < n; i++) {
        const real s = half(x[i]);
        const real slope = TWICE_ROOT * (1 + 3 * CUBIC * x[i] * x[i]);

        y[i] = x[i] * s;
        dy[i] *= s + y[i] * (1 - s) * slope;
    }
}

void bert_gelu_forward(size_t rows, size_t columns, const real *x, real *y)
{
#pragma omp parallel for schedule(static)
    for (size_t r = 0; r < rows; r++)
        forward_row(columns, x + r * columns, y + r * columns);
}

void bert_gelu_backward(size_t rows, size_t columns, const real *x,
                        real *dy, real *y)
{
#pragma omp parallel for schedule(static)
    for (size_t r = 0; r < rows; r++)
        backward_row(columns, x + r * columns, dy + r * columns,
                     y + r * columns);
}
