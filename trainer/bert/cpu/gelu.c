/*
 * gelu.c - Gaussian error linear unit, in its tanh form, of x + bias.
 *
 * x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3), which is
 * x / (1 + exp(-2 u)): Hendrycks and Gimpel, "Gaussian Error Linear Units"
 * (2016), section 2.  The first BERT had this form.
 *
 * SPDX-License-Identifier: MIT
 */
#include "device.h"

#include "vector.h"

#define CUBIC ((real)0.044715)
#define TWICE_ROOT ((real)1.5957691216057307117597842397375) /* 2 sqrt(2/pi) */

static inline real half(real x)
{
    return 1 / (1 + bert_exp(-TWICE_ROOT * (x + CUBIC * x * x * x)));
}

BERT_VECTORS
static void forward_row(size_t n, const real *restrict bias,
                        const real *restrict x, real *restrict y)
{
    for (size_t i = 0; i < n; i++) {
        const real at = x[i] + bias[i];

        y[i] = at * half(at);
    }
}

BERT_VECTORS
static void backward_row(size_t n, const real *restrict bias,
                         const real *restrict x, real *restrict dy,
                         real *restrict y)
{
    for (size_t i = 0; i < n; i++) {
        const real at = x[i] + bias[i];
        const real s = half(at);
        const real slope = TWICE_ROOT * (1 + 3 * CUBIC * at * at);

        y[i] = at * s;
        dy[i] *= s + y[i] * (1 - s) * slope;
    }
}

void bert_cpu_gelu_forward(bert_device *d, size_t rows, size_t columns,
                           const real *bias, const void *x, void *y)
{
    const real *const from = x;
    real *const to = y;

    (void)d;
#pragma omp parallel for schedule(static)
    for (size_t r = 0; r < rows; r++)
        forward_row(columns, bias, from + r * columns, to + r * columns);
}

void bert_cpu_gelu_backward(bert_device *d, size_t rows, size_t columns,
                            const real *bias, const void *x, void *dy,
                            void *y)
{
    const real *const from = x;
    real *const slope = dy;
    real *const to = y;

    (void)d;
#pragma omp parallel for schedule(static)
    for (size_t r = 0; r < rows; r++)
        backward_row(columns, bias, from + r * columns, slope + r * columns,
                     to + r * columns);
}
