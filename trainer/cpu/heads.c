/*
 * heads.c - gather and scatter rows of the encoder's output, tanh, and the
 * losses.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cpu/device.h"

#include <string.h>
#include <tgmath.h>

#include "cpu/softmax.h"

void tr_cpu_gather_rows(tr_device *d, size_t n, size_t width,
                        const int32_t *index, const void *x, void *rows)
{
    const real *const from = x;
    real *const to = rows;

    (void)d;
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * width, from + (size_t)index[i] * width,
               width * sizeof *to);
}

/* Runs in one thread, because an index can occur more than once. */
void tr_cpu_scatter_rows(tr_device *d, size_t n, size_t width,
                         const int32_t *index, const void *rows, void *x)
{
    const real *const from = rows;

    (void)d;
    for (size_t i = 0; i < n; i++) {
        real *const to = (real *)x + (size_t)index[i] * width;

        for (size_t j = 0; j < width; j++)
            to[j] += from[i * width + j];
    }
}

void tr_cpu_tanh_forward(tr_device *d, size_t n, void *x)
{
    real *const y = x;

    (void)d;
    for (size_t i = 0; i < n; i++)
        y[i] = tanh(y[i]);
}

void tr_cpu_tanh_backward(tr_device *d, size_t n, const void *y, void *dy)
{
    const real *const at = y;
    real *const slope = dy;

    (void)d;
    for (size_t i = 0; i < n; i++)
        slope[i] *= 1 - at[i] * at[i];
}

/* True if no logit exceeds the label's. */
static bool is_right(size_t n, const real *x, int32_t label)
{
    if (label < 0)
        return false;
    for (size_t i = 0; i < n; i++)
        if (x[i] > x[label])
            return false;
    return true;
}

void tr_cpu_compare_logits(tr_device *d, size_t rows, size_t columns,
                           size_t stride, const void *x, const int32_t *label,
                           int32_t *right)
{
    const real *const logits = x;

    (void)d;
#pragma omp parallel for schedule(static)
    for (size_t r = 0; r < rows; r++)
        right[r] = is_right(columns, logits + r * stride, label[r]);
}

/* Replaces x by its gradient and returns the loss: both 0 without a label. */
static double lose_row(size_t n, size_t stride, real *x, int32_t label,
                       real weight)
{
    memset(x + n, 0, (stride - n) * sizeof *x);
    if (label >= 0)
        return tr_cross_entropy_row(n, x, (size_t)label, weight);
    memset(x, 0, n * sizeof *x);
    return 0;
}

void tr_cpu_cross_entropy(tr_device *d, tr_loss which, size_t rows,
                          size_t columns, size_t stride, void *x,
                          const int32_t *label, const real *weight,
                          double *loss, bool more)
{
    tr_results *const results = &tr_cpu_of(d)->results;
    real *const logits = x;
    double total = more ? results->loss[which] : 0;

#pragma omp parallel for schedule(static)
    for (size_t r = 0; r < rows; r++)
        loss[r] = lose_row(columns, stride, logits + r * stride, label[r],
                           weight[r]);
    for (size_t r = 0; r < rows; r++)
        total += (double)weight[r] * loss[r];
    results->loss[which] = total;
}
