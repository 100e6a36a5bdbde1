/*
 * softmax.h - softmax of a row, alone and with the loss behind it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CPU_SOFTMAX_H
#define TR_CPU_SOFTMAX_H

#include <stddef.h>
#include <stdint.h>

#include "model/scalar.h"

/* Scores of rows of another segment become minus infinity. */
void tr_mask_row(size_t n, const int32_t *segment, int32_t own, real *x);

/* In place. */
void tr_softmax_row(size_t n, real *x);

/*
 * dx = y (dx - sum of y dx), y being the softmax.  If dropout follows it, y is
 * negative where that drops, and `scale` is what it does to the others.
 */
void tr_softmax_backward_row(size_t n, const real *y, real scale, real *dx);

/*
 * Returns the negative logarithm of the likelihood of `label`; x becomes the
 * gradient of it times `weight`.
 */
double tr_cross_entropy_row(size_t n, real *x, size_t label, real weight);

#endif /* TR_CPU_SOFTMAX_H */
