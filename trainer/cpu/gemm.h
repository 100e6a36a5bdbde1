/*
 * gemm.h - multithreaded matrix products.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CPU_GEMM_H
#define TR_CPU_GEMM_H

#include <stdbool.h>
#include <stddef.h>

#include "model/scalar.h"

/*
 * C = A B + beta C.  Matrices are row-major; A is m x k, B is k x n.  A turned
 * operand is stored as its transpose.  A and C have row strides; B is
 * contiguous.
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
 * Computes the product.  Each tile of C is one BLAS call.  The tiles do not
 * depend on the number of threads; if the BLAS uses a single thread, neither do
 * the results.
 */
void tr_multiply(const tr_product *product);

#endif /* TR_CPU_GEMM_H */
