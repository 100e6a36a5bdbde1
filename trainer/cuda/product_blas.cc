/*
 * product_blas.cc - matrix products with OpenBLAS, for the test build.
 *
 * Each product is queued as a host function, so it runs in order with the
 * kernels of the stream.  bfloat16 is converted to real, and sums are real, as
 * on a GPU.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cblas.h>

#include <vector>

#include "cuda/product.h"
#include "hostcuda.h"

#ifdef TR_DOUBLE
#define GEMM cblas_dgemm
#else
#define GEMM cblas_sgemm
#endif

bool tr_products_open(tr_cuda *c)
{
    openblas_set_num_threads(1);
    return !c->failed;
}

void tr_products_close(tr_cuda *c)
{
    (void)c;
}

static void gemm(const tr_product *p, const real *a, const real *b, real *c)
{
    GEMM(CblasRowMajor, p->a_turned ? CblasTrans : CblasNoTrans,
         p->b_turned ? CblasTrans : CblasNoTrans, (blasint)p->m, (blasint)p->n,
         (blasint)p->k, 1, a, (blasint)(p->a_turned ? p->m : p->k), b,
         (blasint)(p->b_turned ? p->k : p->n), (real)p->beta, c,
         (blasint)p->n);
}

/* Copies a rows x columns matrix without the gaps between its rows. */
static std::vector<real> reals(const void *from, size_t rows, size_t columns,
                               size_t stride, bool bf16)
{
    std::vector<real> to;

    to.reserve(rows * columns);
    for (size_t r = 0; r < rows; r++)
        for (size_t i = r * stride; i < r * stride + columns; i++)
            to.push_back(bf16 ? (real)__bfloat162float(
                                    ((const __nv_bfloat16 *)from)[i])
                              : ((const real *)from)[i]);
    return to;
}

static void put(const std::vector<real> &from, void *to, size_t columns,
                size_t stride, bool bf16)
{
    for (size_t i = 0; i < from.size(); i++) {
        const size_t at = i / columns * stride + i % columns;

        if (bf16)
            ((__nv_bfloat16 *)to)[at] = __float2bfloat16((float)from[i]);
        else
            ((real *)to)[at] = from[i];
    }
}

static void multiply(const tr_product *p, bool bf16)
{
    const bool c_bf16 = bf16 && !p->c_real;
    const std::vector<real> a
        = reals(p->a, p->a_turned ? p->k : p->m, p->a_turned ? p->m : p->k,
                p->a_stride, bf16);
    const std::vector<real> b = reals(p->b, 1, p->k * p->n, 0, bf16);
    std::vector<real> c(p->m * p->n);

    if (p->beta)
        c = reals(p->c, p->m, p->n, p->c_stride, c_bf16);
    gemm(p, a.data(), b.data(), c.data());
    if (p->bias) {
        const std::vector<real> bias = reals(p->bias, 1, p->n, 0, bf16);

        for (size_t i = 0; i < c.size(); i++)
            c[i] += bias[i % p->n];
    }
    put(c, p->c, p->n, p->c_stride, c_bf16);
}

bool tr_cuda_fuses(tr_cuda *c, const tr_product *product)
{
    (void)c;
    return product->gelu == TR_NO_GELU;
}

void tr_cuda_multiply(tr_cuda *c, const tr_product *given)
{
    const tr_product p = *given;
    const bool bf16 = c->bf16;

    if (p.m == 0 || p.n == 0 || p.k == 0
        || !tr_cuda_asks(c, p.c, (uint64_t)p.m << 32 | p.n, p.k))
        return;
    hostcuda::enqueue(c->stream, "product", [p, bf16] { multiply(&p, bf16); },
                      {p.a, p.b, p.bias, p.c});
}
