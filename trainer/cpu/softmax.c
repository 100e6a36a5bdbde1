/*
 * softmax.c - softmax of a row, alone or with cross-entropy.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cpu/softmax.h"

#include "cpu/vector.h"

#define LANES 16
#define SUM_MOST 32768 /* longer sums would lose digits in float */

TR_VECTORS
void tr_mask_row(size_t n, const int32_t *segment, int32_t own, real *x)
{
    for (size_t i = 0; i < n; i++)
        x[i] = segment[i] == own ? x[i] : (real)-INFINITY;
}

/* Uses explicit lanes, because not every compiler vectorises a maximum. */
TR_VECTORS
real tr_largest(size_t n, const real *x)
{
    real lane[LANES];
    real m = x[0];
    size_t i = 0;

    for (size_t j = 0; j < LANES; j++)
        lane[j] = m;
    for (; i + LANES <= n; i += LANES) {
        for (size_t j = 0; j < LANES; j++)
            lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
    }
    for (; i < n; i++)
        m = x[i] > m ? x[i] : m;
    for (size_t j = 0; j < LANES; j++)
        m = lane[j] > m ? lane[j] : m;
    return m;
}

TR_VECTORS
static void raise(size_t n, real max, real *x)
{
    for (size_t i = 0; i < n; i++)
        x[i] = tr_exp(x[i] - max);
}

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
real tr_exp_row(size_t n, real shift, real *x)
{
    real s = 0;

#pragma omp simd reduction(+ : s)
    for (size_t i = 0; i < n; i++) {
        x[i] = tr_exp(x[i] - shift);
        s += x[i];
    }
    return s;
}

TR_VECTORS
static void scale(size_t n, real by, real *x)
{
    for (size_t i = 0; i < n; i++)
        x[i] *= by;
}

void tr_softmax_row(size_t n, real *x)
{
    raise(n, tr_largest(n, x), x);
    scale(n, 1 / sum(n, x), x);
}

/* Applies dropout to dx.  Returns the sum of y dx. */
TR_VECTORS
static real pass_dropout(size_t n, const real *restrict y, real by,
                         real *restrict dx)
{
    real s = 0;

#pragma omp simd reduction(+ : s)
    for (size_t i = 0; i < n; i++) {
        dx[i] = y[i] > 0 ? dx[i] * by : 0;
        s += y[i] * dx[i];
    }
    return s;
}

TR_VECTORS
static void shift_and_weigh(size_t n, const real *restrict y, real shift,
                            real *restrict dx)
{
    for (size_t i = 0; i < n; i++)
        dx[i] = fabs(y[i]) * (dx[i] - shift);
}

void tr_softmax_backward_row(size_t n, const real *y, real by, real *dx)
{
    shift_and_weigh(n, y, pass_dropout(n, y, by, dx), dx);
}

static real sum_in_parts(size_t n, const real *x)
{
    real s = 0;

    for (size_t i = 0; i < n; i += SUM_MOST)
        s += sum(n - i < SUM_MOST ? n - i : SUM_MOST, x + i);
    return s;
}

double tr_cross_entropy_row(size_t n, real *x, size_t label, real weight)
{
    const real own = x[label];
    const real max = tr_largest(n, x);
    real all;

    raise(n, max, x);
    all = sum_in_parts(n, x);
    scale(n, weight / all, x);
    x[label] -= weight;
    return log((double)all) + (double)max - (double)own;
}
