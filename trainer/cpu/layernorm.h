/*
 * layernorm.h - layer norm of a row.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_CPU_LAYERNORM_H
#define BERT_CPU_LAYERNORM_H

#include "model/ops.h"

/* hat[] holds the input and becomes what is kept. */
void bert_norm_row(const bert_norm *norm, real *hat, real *inverse,
                   real *y);

#endif /* BERT_CPU_LAYERNORM_H */
