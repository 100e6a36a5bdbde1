/*
 * layernorm.c - layer norm or RMS norm of rows, or of sums of rows.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cpu/layernorm.h"

#include <string.h>

#include "cpu/columns.h"
#include "cpu/device.h"
#include "cpu/dropout_rows.h"
#include "cpu/vector.h"

TR_VECTORS
static real sum(size_t n, const real *x)
{
    real s = 0;

#pragma omp simd reduction(+ : s)
    for (size_t i = 0; i < n; i++)
        s += x[i];
    return s;
}

TR_VECTORS
static real sum_squares(size_t n, const real *x, real mean)
{
    real s = 0;

#pragma omp simd reduction(+ : s)
    for (size_t i = 0; i < n; i++)
        s += (x[i] - mean) * (x[i] - mean);
    return s;
}

TR_VECTORS
static void normalise(size_t n, real mean, real inverse,
                      const real *restrict gain, const real *restrict bias,
                      real *restrict hat, real *restrict y)
{
    for (size_t i = 0; i < n; i++) {
        hat[i] = (hat[i] - mean) * inverse;
        y[i] = hat[i] * gain[i] + bias[i];
    }
}

/* The same without bias. */
TR_VECTORS
static void normalise_only(size_t n, real mean, real inverse,
                           const real *restrict gain, real *restrict hat,
                           real *restrict y)
{
    for (size_t i = 0; i < n; i++) {
        hat[i] = (hat[i] - mean) * inverse;
        y[i] = hat[i] * gain[i];
    }
}

void tr_norm_row(const tr_norm *norm, real *hat, real *inverse, real *y)
{
    const size_t n = norm->width;
    const real mean = norm->rms ? 0 : sum(n, hat) / (real)n;
    const real variance = sum_squares(n, hat, mean) / (real)n;

    *inverse = 1 / sqrt(variance + (real)norm->epsilon);
    if (norm->bias)
        normalise(n, mean, *inverse, norm->gain, norm->bias, hat, y);
    else
        normalise_only(n, mean, *inverse, norm->gain, hat, y);
}

void tr_cpu_norm_forward(tr_device *d, const tr_norm *norm, size_t rows,
                         const void *x, const tr_norm_kept *kept, void *y)
{
    const size_t n = norm->width;
    const real *const from = x;
    real *const hat = kept->hat;
    real *const to = y;

    (void)d;
#pragma omp parallel for schedule(static)
    for (size_t r = 0; r < rows; r++) {
        memcpy(hat + r * n, from + r * n, n * sizeof *hat);
        tr_norm_row(norm, hat + r * n, kept->inverse + r, to + r * n);
    }
}

TR_VECTORS
static void add(size_t n, const real *restrict x, const real *restrict y,
                const real *restrict bias, real *restrict z)
{
    for (size_t i = 0; i < n; i++)
        z[i] = x[i] + (y[i] + bias[i]);
}

void tr_cpu_sum_norm_forward(tr_device *d, const tr_norm *norm,
                             size_t rows, const void *residual,
                             const void *branch, const real *bias,
                             const tr_dropout *dropout, uint32_t site,
                             const tr_norm_kept *kept, void *y)
{
    const size_t n = norm->width;
    const real *const x = residual;
    const real *const b = branch;
    real *const to = y;

    (void)d;
#pragma omp parallel for schedule(static)
    for (size_t r = 0; r < rows; r++) {
        real *const hat = (real *)kept->hat + r * n;

        if (dropout->threshold)
            tr_dropout_sum(dropout, tr_dropout_at_row(dropout, site, r), n,
                           x + r * n, b + r * n, bias, hat);
        else
            add(n, x + r * n, b + r * n, bias, hat);
        tr_norm_row(norm, hat, kept->inverse + r, to + r * n);
    }
}

/* Computes the sums of gain * dy and of gain * dy * hat. */
TR_VECTORS
static void backward_sums(size_t n, const real *gain, const real *dy,
                          const real *hat, real sums[2])
{
    real s = 0;
    real t = 0;

#pragma omp simd reduction(+ : s, t)
    for (size_t i = 0; i < n; i++) {
        s += gain[i] * dy[i];
        t += gain[i] * dy[i] * hat[i];
    }
    sums[0] = s;
    sums[1] = t;
}

/* Sets dx, or adds to it. */
TR_VECTORS
static void backward_row(const tr_norm *norm, const real *dy, const real *hat,
                         real inverse, bool adds, real *dx)
{
    const size_t n = norm->width;
    const real *const gain = norm->gain;
    real sums[2];
    real mean;
    real slope;

    backward_sums(n, gain, dy, hat, sums);
    mean = norm->rms ? 0 : sums[0] / (real)n;
    slope = sums[1] / (real)n;
    if (adds) {
#pragma omp simd
        for (size_t i = 0; i < n; i++)
            dx[i] += inverse * (gain[i] * dy[i] - mean - hat[i] * slope);
        return;
    }
#pragma omp simd
    for (size_t i = 0; i < n; i++)
        dx[i] = inverse * (gain[i] * dy[i] - mean - hat[i] * slope);
}

/* Computes the gradients of gain and bias. */
static void parameter_gradients(const tr_norm *norm, size_t rows,
                                const real *dy, const real *hat)
{
    const size_t n = norm->width;

    tr_columns_sum_products(rows, n, dy, hat, norm->adds, norm->gain_gradient);
    if (norm->bias_gradient)
        tr_columns_sum(rows, n, n, dy, norm->adds, norm->bias_gradient);
}

void tr_cpu_norm_backward(tr_device *d, const tr_norm *norm,
                          size_t rows, const tr_norm_kept *kept,
                          const void *dy, const tr_dropout *dropout,
                          uint32_t site, void *dx, void *d_branch)
{
    const size_t n = norm->width;
    const real *const from = dy;
    const real *const hat = kept->hat;
    real *const to = dx;
    real *const branch = d_branch;

    (void)d;
    parameter_gradients(norm, rows, from, hat);
#pragma omp parallel for schedule(static)
    for (size_t r = 0; r < rows; r++) {
        backward_row(norm, from + r * n, hat + r * n, kept->inverse[r], false,
                     to + r * n);
        if (dropout->threshold)
            tr_dropout_apply(dropout, tr_dropout_at_row(dropout, site, r),
                             n, to + r * n, branch + r * n);
    }
}

/* sum = copy = x + branch; sum may be x. */
TR_VECTORS
static void add_twice(size_t n, const real *restrict branch, const real *x,
                      real *sum, real *restrict copy)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++)
        copy[i] = sum[i] = x[i] + branch[i];
}

void tr_cpu_add_norm_forward(tr_device *d, const tr_norm *norm, size_t rows,
                             const void *branch, const void *x, void *sum,
                             const tr_norm_kept *kept, void *y)
{
    const size_t n = norm->width;
    const real *const from = x;
    const real *const b = branch;
    real *const stream = sum;
    real *const to = y;

    if (!branch) {
        tr_cpu_norm_forward(d, norm, rows, x, kept, y);
        return;
    }
#pragma omp parallel for schedule(static)
    for (size_t r = 0; r < rows; r++) {
        real *const hat = (real *)kept->hat + r * n;

        add_twice(n, b + r * n, from + r * n, stream + r * n, hat);
        tr_norm_row(norm, hat, kept->inverse + r, to + r * n);
    }
}

void tr_cpu_add_norm_backward(tr_device *d, const tr_norm *norm, size_t rows,
                              const tr_norm_kept *kept, const void *dy,
                              void *dx)
{
    const size_t n = norm->width;
    const real *const from = dy;
    const real *const hat = kept->hat;
    real *const to = dx;

    (void)d;
    parameter_gradients(norm, rows, from, hat);
#pragma omp parallel for schedule(static)
    for (size_t r = 0; r < rows; r++)
        backward_row(norm, from + r * n, hat + r * n, kept->inverse[r], true,
                     to + r * n);
}

void tr_cpu_head_norm_forward(tr_device *d, const tr_norm *norm, size_t rows,
                              size_t heads, size_t stride,
                              const tr_norm_kept *kept, void *x)
{
    const size_t n = norm->width;
    real *const hat = kept->hat;
    real *const to = x;

    (void)d;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < rows * heads; i++) {
        real *const head = to + i / heads * stride + i % heads * n;

        memcpy(hat + i * n, head, n * sizeof *hat);
        tr_norm_row(norm, hat + i * n, kept->inverse + i, head);
    }
}

void tr_cpu_head_norm_backward(tr_device *d, const tr_norm *norm, size_t rows,
                               size_t heads, size_t stride,
                               const tr_norm_kept *kept, void *dx)
{
    const size_t n = norm->width;
    const real *const hat = kept->hat;
    real *const to = dx;

    (void)d;
    tr_columns_sum_heads(rows, heads, n, stride, to, hat, norm->adds,
                         norm->gain_gradient);
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < rows * heads; i++) {
        real *const head = to + i / heads * stride + i % heads * n;

        backward_row(norm, head, hat + i * n, kept->inverse[i], false, head);
    }
}
