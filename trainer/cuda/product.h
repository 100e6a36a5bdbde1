/*
 * product.h - matrix products, computed by cuBLASLt on a GPU and by OpenBLAS in
 * the test build.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_PRODUCT_H
#define TR_CUDA_PRODUCT_H

#include "cuda/device.h"

/*
 * Maximum number of cached plans of cuBLASLt.  A step of a model needs 24: 12
 * that all layers share, and 6 for each of the two training heads.
 */
#define TR_PLANS 64

enum tr_gelu { TR_NO_GELU, TR_GELU_VALUE, TR_GELU_SLOPE };

/*
 * C = A B + bias + beta C.  Matrices are row-major; A is m x k, B is k x n.  A
 * turned operand is stored as its transpose.  A and C have row strides; B is
 * contiguous.
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
    const void *bias; /* [n] values; may be NULL */
    int beta;         /* 0 or 1 */
    void *c;
    size_t c_stride;
    bool c_real; /* C holds reals, not values */
    tr_gelu gelu;
    void *u; /* like C; C = gelu(u) with u = A B + bias, or C = A B gelu'(u) */
};

/* Returns false after a failure, which tr_cuda_good() has recorded. */
bool tr_products_open(tr_cuda *c);
void tr_products_close(tr_cuda *c);

/*
 * True if the product has no GELU or can be fused with it, which depends on the
 * shape and on the alignment of the arrays.
 */
bool tr_cuda_fuses(tr_cuda *c, const tr_product *product);

/* Queues the product in c->stream. */
void tr_cuda_multiply(tr_cuda *c, const tr_product *product);

#endif /* TR_CUDA_PRODUCT_H */
