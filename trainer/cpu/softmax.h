/*
 * softmax.h - softmax of a row, alone or with cross-entropy.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CPU_SOFTMAX_H
#define TR_CPU_SOFTMAX_H

#include <stddef.h>
#include <stdint.h>

#include "model/scalar.h"

/* Sets the scores of rows outside segment `own` to minus infinity. */
void tr_mask_row(size_t n, const int32_t *segment, int32_t own, real *x);

/* Returns the largest of at least one number. */
real tr_largest(size_t n, const real *x);

/* Replaces x by exp(x - shift).  Returns the sum. */
real tr_exp_row(size_t n, real shift, real *x);

/* Computes the softmax of x in place. */
void tr_softmax_row(size_t n, real *x);

/*
 * Computes dx = y (dx - sum of y dx), where y is the softmax.  If dropout
 * follows the softmax, y has a negative sign where an element was dropped, and
 * `scale` is the factor that dropout applied to the other elements.
 */
void tr_softmax_backward_row(size_t n, const real *y, real scale, real *dx);

/*
 * Returns the negative log-likelihood of `label`, and replaces x by its
 * gradient times `weight`.
 */
double tr_cross_entropy_row(size_t n, real *x, size_t label, real weight);

#endif /* TR_CPU_SOFTMAX_H */
