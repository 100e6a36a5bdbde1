/*
 * gelu.c - the Gaussian error linear unit, in its tanh form.
 *
 * GELU(x) is x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3), or x
 * / (1 + exp(-2 u)): see Hendrycks and Gimpel, "Gaussian Error Linear Units"
 * (2016), section 2.  The original BERT uses this form.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cpu/device.h"

#include "cpu/vector.h"

#define BLOCK 4096 /* numbers per thread at a time */
#define CUBIC ((real)0.044715)
#define TWICE_ROOT ((real)1.5957691216057307117597842397375) /* 2 sqrt(2/pi) */

static inline real half(real x)
{
    return 1 / (1 + tr_exp(-TWICE_ROOT * (x + CUBIC * x * x * x)));
}

TR_VECTORS
static void forward(size_t n, const real *restrict u, real *restrict y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = u[i] * half(u[i]);
}

TR_VECTORS
static void backward(size_t n, const real *restrict u, real *restrict dy)
{
    for (size_t i = 0; i < n; i++) {
        const real s = half(u[i]);
        const real slope = TWICE_ROOT * (1 + 3 * CUBIC * u[i] * u[i]);

        dy[i] *= s + u[i] * s * (1 - s) * slope;
    }
}

static size_t count(size_t n, size_t at)
{
    return n - at < BLOCK ? n - at : BLOCK;
}

void tr_cpu_gelu_forward(size_t n, const real *u, real *y)
{
#pragma omp parallel for schedule(static)
    for (size_t at = 0; at < n; at += BLOCK)
        forward(count(n, at), u + at, y + at);
}

void tr_cpu_gelu_backward(tr_device *d, size_t n, const void *u, void *dy)
{
    const real *const from = u;
    real *const slope = dy;

    (void)d;
#pragma omp parallel for schedule(static)
    for (size_t at = 0; at < n; at += BLOCK)
        backward(count(n, at), from + at, slope + at);
}
