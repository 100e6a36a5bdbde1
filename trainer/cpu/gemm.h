/*
 * gemm.h - products of matrices, on all processors.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CPU_GEMM_H
#define TR_CPU_GEMM_H

#include <stdbool.h>
#include <stddef.h>

#include "model/scalar.h"

/*
 * C = A B + beta C, with A of m x k numbers and B of k x n, row after row;
 * where one is said to be turned, it is stored as its transpose.  Rows of A and
 * C lie a stride apart, those of B as far as they are wide.
 */
typedef struct tr_product {
    size_t m;
    size_t n;
    size_t k;
    const real *a;
    bool a_turned;
    size_t a_stride;
    const real *b;
    bool b_turned;
    real beta; /* 0 or 1 */
    real *c;
    size_t c_stride;
} tr_product;

/*
 * C is cut into tiles, whatever the number of threads is, and each tile is
 * one call of the BLAS: the same bits for any number of threads, as long as
 * the BLAS itself uses one.
 */
void tr_multiply(const tr_product *product);

#endif /* TR_CPU_GEMM_H */
