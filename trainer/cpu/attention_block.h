/*
 * attention_block.h - attention of one head within one block of rows.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_CPU_ATTENTION_BLOCK_H
#define BERT_CPU_ATTENTION_BLOCK_H

#include "model/ops.h"

typedef struct bert_block {
    const bert_attend *attend;
    size_t head;
    size_t row;             /* its first */
    size_t n;               /* rows */
    const int32_t *segment; /* [n] rows of one segment meet; NULL: all do */
    /* n x n, the softmax before dropout; negative where that drops. */
    real *kept;
    real *scratch; /* n x n */
} bert_block;

void bert_block_forward(const bert_block *block, const real *qkv, real *out);
void bert_block_backward(const bert_block *block, const real *qkv,
                         const real *d_out, real *d_qkv);

#endif /* BERT_CPU_ATTENTION_BLOCK_H */
