/*
 * attention_block.h - attention of one head within one block of rows.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CPU_ATTENTION_BLOCK_H
#define TR_CPU_ATTENTION_BLOCK_H

#include "model/ops.h"

typedef struct tr_block {
    const tr_attend *attend;
    size_t head;
    size_t row;             /* first row, in the batch */
    size_t n;               /* rows */
    const int32_t *segment; /* [n] rows attend within a segment; NULL: to all */
    /* [n x n] softmax before dropout; dropped numbers are negated. */
    real *kept;
    real *scratch; /* n x n */
} tr_block;

void tr_block_forward(const tr_block *block, const real *qkv, real *out);
void tr_block_backward(const tr_block *block, const real *qkv,
                       const real *d_out, real *d_qkv);

#endif /* TR_CPU_ATTENTION_BLOCK_H */
