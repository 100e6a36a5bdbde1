/*
 * product_blas.cc - products by OpenBLAS, in the build for tests.
 *
 * A product is a call of the host in the stream, so it comes in the order of
 * the kernels around it.  bfloat16 becomes real first, and sums are real, as
 * on a GPU.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cblas.h>

#include <vector>

#include "hostcuda.h"
#include "product.h"

#ifdef BERT_DOUBLE
#define GEMM cblas_dgemm
#else
#define GEMM cblas_sgemm
#endif

bool bert_products_open(bert_cuda *c)
{
    openblas_set_num_threads(1);
    return !c->failed;
}

void bert_products_close(bert_cuda *c)
{
    (void)c;
}

static void gemm(const bert_product *p, const real *a, const real *b, real *c)
{
    GEMM(CblasRowMajor, p->a_turned ? CblasTrans : CblasNoTrans,
         p->b_turned ? CblasTrans : CblasNoTrans, (blasint)p->m, (blasint)p->n,
         (blasint)p->k, 1, a, (blasint)(p->a_turned ? p->m : p->k), b,
         (blasint)(p->b_turned ? p->k : p->n), (real)p->beta, c,
         (blasint)p->n);
}

static std::vector<real> reals(const void *from, size_t n, bool bf16)
{
    std::vector<real> to(n);

    for (size_t i = 0; i < n; i++)
        to[i] = bf16 ? (real)__bfloat162float(
                           ((const __nv_bfloat16 *)from)[i])
                     : ((const real *)from)[i];
    return to;
}

static void put(const std::vector<real> &from, void *to, bool bf16)
{
    for (size_t i = 0; i < from.size(); i++)
        if (bf16)
            ((__nv_bfloat16 *)to)[i] = __float2bfloat16((float)from[i]);
        else
            ((real *)to)[i] = from[i];
}

static void multiply(const bert_product *p, bool bf16)
{
    const bool c_bf16 = bf16 && !p->c_real;
    const std::vector<real> a = reals(p->a, p->m * p->k, bf16);
    const std::vector<real> b = reals(p->b, p->k * p->n, bf16);
    std::vector<real> c(p->m * p->n);

    if (p->beta)
        c = reals(p->c, p->m * p->n, c_bf16);
    gemm(p, a.data(), b.data(), c.data());
    if (p->bias) {
        const std::vector<real> bias = reals(p->bias, p->n, bf16);

        for (size_t i = 0; i < c.size(); i++)
            c[i] += bias[i % p->n];
    }
    put(c, p->c, c_bf16);
}

void bert_cuda_multiply(bert_cuda *c, const bert_product *given)
{
    const bert_product p = *given;
    const bool bf16 = c->bf16;

    if (c->failed || p.m == 0 || p.n == 0 || p.k == 0)
        return;
    hostcuda::enqueue(c->stream, "product", [p, bf16] { multiply(&p, bf16); },
                      {p.a, p.b, p.bias, p.c});
}
