/*
 * product.h - products of matrices, by cuBLASLt on a GPU and by OpenBLAS in
 * the build for tests.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_PRODUCT_H
#define TR_CUDA_PRODUCT_H

#include "cuda/device.h"

/*
 * Shapes of products that cuBLASLt's choices are kept for.  A step of a model
 * has 24 of them: 12 that all layers share, and 6 of each head.
 */
#define TR_PLANS 64

enum tr_gelu { TR_NO_GELU, TR_GELU, TR_GELU_SLOPE };

/*
 * C = A B + bias + beta C, with A of m x k values and B of k x n, row after
 * row; where one is said to be turned, it is stored as its transpose.  Rows of
 * A and C lie a stride apart, those of B as far as they are wide.
 */
struct tr_product {
    size_t m;
    size_t n;
    size_t k;
    const void *a;
    bool a_turned;
    size_t a_stride;
    const void *b;
    bool b_turned;
    const void *bias; /* values, a column of C each; NULL: none */
    int beta;         /* 0 or 1 */
    void *c;
    size_t c_stride;
    bool c_real; /* C holds reals, not values */
    tr_gelu gelu;
    void *u; /* as C lies: u = A B + bias, C = gelu(u); or C = A B gelu'(u) */
};

/* False: it failed, as tr_cuda_good() has kept. */
bool tr_products_open(tr_cuda *c);
void tr_products_close(tr_cuda *c);

/*
 * Whether there is such a product, with its GELU: that depends on its shape
 * and on how its arrays are aligned.  Without GELU there always is.
 */
bool tr_cuda_fuses(tr_cuda *c, const tr_product *product);

/* In c->stream, like a kernel. */
void tr_cuda_multiply(tr_cuda *c, const tr_product *product);

#endif /* TR_CUDA_PRODUCT_H */
