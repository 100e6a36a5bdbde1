/*
 * layernorm.h - layer norm of a row.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CPU_LAYERNORM_H
#define TR_CPU_LAYERNORM_H

#include "model/ops.h"

/* Replaces hat[], the input, by the normalised row. */
void tr_norm_row(const tr_norm *norm, real *hat, real *inverse, real *y);

#endif /* TR_CPU_LAYERNORM_H */
