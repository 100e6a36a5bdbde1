/*
 * product-lt-t.cc - products of product_lt.cu, with tests/hostcuda instead of
 * cuBLASLt: their numbers, cached plans, and failures.  The last part tests the
 * errors of the emulation.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cuda_runtime.h>

#include <cublasLt.h>

#include "cuda/product.h"
#include "hostcuda.h"
#include "products.h"

/* ---- Plans ---- */

#define SIDE 8
#define LAYER 128 /* from one layer to the next: weight, bias, and a gap */

/* Two layers of SIDE x SIDE, for up to this many rows. */
struct layers {
    const rig &r;
    array weights, x, y;

    layers(const rig &r_, size_t rows)
        : r(r_), weights(r, REALS, draw(r, VALUES, 2 * LAYER, 1)),
          x(r, VALUES, draw(r, VALUES, rows * SIDE + 1, 2)),
          y(r, VALUES, rows * SIDE)
    {
        r.ops->weights_written(r.d, weights, weights.n);
    }
    /*
     * How many searches for an algorithm it takes to multiply this many rows,
     * from number `first` of x on, in layer 0 or 1; -1: the numbers are wrong.
     */
    int searches(size_t rows, size_t first = 0, size_t layer = 0) const
    {
        real *const weight = (real *)weights + layer * LAYER;
        const tr_linear l = {SIDE, SIDE, SIDE, weight,
                               weight + SIDE * SIDE, NULL, NULL, false};
        const unsigned before = hostcuda_lt_counts().heuristics;
        const numbers all = weights.back(), from = x.back();
        const double *const w = &all[layer * LAYER];
        numbers right(rows * SIDE), got;

        r.ops->linear_forward(r.d, &l, rows,
                              x.p + first * r.d->value_size, true, y);
        for (size_t i = 0; i < right.size(); i++)
            right[i] = w[SIDE * SIDE + i % SIDE];
        multiply(rows, SIDE, SIDE, from.data() + first, SIDE, 1, w, 1, SIDE,
                 right.data());
        got = y.back();
        got.resize(right.size());
        if (!rounded(r, got, right))
            return -1;
        return (int)(hostcuda_lt_counts().heuristics - before);
    }
};

static unsigned objects(void)
{
    const hostcuda_lt_count n = hostcuda_lt_counts();

    return n.created - n.destroyed;
}

static void test_plans(const rig &r)
{
    const layers l(r, TR_PLANS + 1);
    bool good = true;

    for (size_t rows = 1; rows <= TR_PLANS; rows++)
        good = l.searches(rows) == 1 && good;
    ok(good, "%s: an algorithm is looked for once for each shape", r.name);
    for (size_t rows = 1; rows <= TR_PLANS; rows++)
        good = l.searches(rows) == 0 && good;
    ok(good, "%s: and %d of them are kept", r.name, TR_PLANS);
    good = l.searches(1) == 0 && l.searches(TR_PLANS + 1) == 1
           && l.searches(1) == 0 && l.searches(3) == 0 && l.searches(2) == 1;
    ok(good, "%s: one more takes the place of the least recently used",
       r.name);
    ok(objects() == 1 + 4 * TR_PLANS, "%s: %u objects are alive", r.name,
       objects());
}

/* Products share a plan if they agree in everything that determines it. */
static void test_shapes(const rig &r)
{
    const unsigned before = hostcuda_lt_counts().heuristics;
    int searches;

    test_linear(r, SIDE, SIDE, SIDE, SIDE);
    searches = (int)(hostcuda_lt_counts().heuristics - before);
    ok(searches == (r.bf16 ? 8 : 6),
       "%s: all products of %d x %d x %d have %d plans", r.name, SIDE, SIDE,
       SIDE, searches);

    const layers l(r, 70);

    ok(l.searches(9) == 1 && l.searches(9, 0, 1) == 0,
       "%s: two layers have one plan", r.name);
    ok(l.searches(9, 1) == 1 && l.searches(9, 1) == 0 && l.searches(9) == 0,
       "%s: numbers that lie elsewhere have another plan", r.name);
}

/* ---- GELU ---- */

/* Launches of GELU, forward and backward, with arrays offset by `shift`. */
static int gelu_launches(const rig &r, size_t rows, size_t shift,
                         tr_activation act = TR_GELU_TANH, bool biased = true)
{
    const layers l(r, rows);
    const size_t n = rows * SIDE;
    real *const bias = biased ? (real *)l.weights + SIDE * SIDE : NULL;
    const tr_linear up = {SIDE, SIDE, SIDE, l.weights, bias, NULL, NULL,
                          false};
    const array u(r, VALUES, n + shift), y(r, VALUES, n), d(r, VALUES, n);
    char *const where = u.p + shift * r.d->value_size;
    tr_results results;
    const char *why;

    r.ops->finish(r.d, &results, &why);
    r.ops->linear_gelu_forward(r.d, &up, act, rows, l.x, where, y);
    r.ops->linear_gelu_backward(r.d, &up, act, rows, l.x, where, d);
    return r.ops->finish(r.d, &results, &why) ? (int)results.launches : -1;
}

/* Two products, each followed by a GELU kernel or not. */
static void test_gelu(const rig &r)
{
    const int fused = r.bf16 ? 2 : 4;

    ok(gelu_launches(r, 9, 0) == fused && gelu_launches(r, 9, 8) == fused,
       "%s: %s", r.name, r.bf16 ? "products end with GELU"
                                : "kernels come to GELU");
    ok(gelu_launches(r, 9, 1) == 4, "%s: kernels do where u lies anywhere",
       r.name);
    ok(gelu_launches(r, 9, 0, TR_GELU) == 4,
       "%s: kernels do, if it is GELU by erf", r.name);
    ok(gelu_launches(r, 9, 0, TR_GELU_TANH, false) == (r.bf16 ? 3 : 4),
       "%s: a kernel does, forward and without bias", r.name);
    hostcuda_fail("cublasLtMatmulAlgoGetHeuristic:1=15");
    ok(!r.bf16 || gelu_launches(r, 10, 0) == fused + 1,
       "%s: and if cuBLASLt lacks such a product", r.name);
    hostcuda_fail(NULL);
}

static void test_precision(tr_precision precision)
{
    const unsigned before = objects();
    const rig r = open_rig(precision);

    test_products(r);
    test_shapes(r);
    test_gelu(r);
    tr_device_close(r.d);
    ok(objects() == before, "%s: all objects are destroyed", r.name);
}

/* ---- Failures ---- */

/* A product on a device that may fail; true if nothing failed. */
static bool run_product(char *why, size_t size)
{
    tr_device *const d = tr_cuda_open(0, TR_BF16, why, size);
    const char *text = NULL;
    tr_results results;
    bool good;

    if (d == NULL)
        return false;
    real *const w = (real *)d->ops->alloc(d, 4 * 24 * sizeof *w);
    const tr_linear l = {3, 5, 5, w, w + 15, NULL, NULL, false};

    if (w != NULL) {
        d->ops->fill(d, w, 0, 4 * 24 * sizeof *w);
        d->ops->weights_written(d, w, 20);
        d->ops->linear_forward(d, &l, 2, w + 24, true, w + 48);
        d->ops->linear_forward(d, &l, 2, w + 24, true, w + 48);
    }
    good = d->ops->finish(d, &results, &text) && w != NULL;
    if (!good)
        snprintf(why, size, "%s", text ? text : "NULL");
    d->ops->release(d, w);
    tr_device_close(d);
    return good;
}

/* Makes each call of a kind fail in turn, until a run succeeds. */
static void test_failures(const char *what)
{
    const unsigned before = objects();
    char spec[80], why[200] = "";
    int n = 0;
    bool good = true;

    for (;; n++) {
        bool ran;

        snprintf(spec, sizeof spec, "%s:%d", what, n + 1);
        hostcuda_fail(spec);
        ran = run_product(why, sizeof why);
        hostcuda_fail(NULL);
        if (ran)
            break;
        if (n == 0)
            printf("# %s\n", why);
        good = good && why[0] && objects() == before;
        why[0] = 0;
    }
    ok(good && n > 0, "%d calls of %s fail, one by one", n, what);
}

static void test_message(const char *spec, const char *right)
{
    char why[200] = "";

    hostcuda_fail(spec);
    ok(!run_product(why, sizeof why) && strcmp(why, right) == 0, "%s", why);
    hostcuda_fail(NULL);
}

/* ---- Errors of the cuBLASLt emulation ---- */

/* D = op(A) op(B) + bias, 4 x 3 numbers of float, and its descriptors. */
struct call {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t found = {};
    char *memory; /* 256 bytes each: A, B, D, bias, workspace, GELU's input */
    size_t workspace_size = 256;

    template <typename T>
    cublasStatus_t attribute(cublasLtMatmulDescAttributes_t which, T value)
    {
        return cublasLtMatmulDescSetAttribute(desc, which, &value,
                                              sizeof value);
    }
    template <typename T>
    cublasStatus_t prefer(cublasLtMatmulPreferenceAttributes_t which, T value)
    {
        return cublasLtMatmulPreferenceSetAttribute(preference, which, &value,
                                                    sizeof value);
    }
    call()
    {
        cudaMalloc(&memory, 6 * 256);
        cublasLtCreate(&handle);
        cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
        cublasLtMatrixLayoutCreate(&a, CUDA_R_32F, 4, 2, 5);
        cublasLtMatrixLayoutCreate(&b, CUDA_R_32F, 3, 2, 3);
        cublasLtMatrixLayoutCreate(&c, CUDA_R_32F, 4, 3, 4);
        cublasLtMatmulPreferenceCreate(&preference);
        attribute(CUBLASLT_MATMUL_DESC_TRANSB, (int32_t)CUBLAS_OP_T);
        attribute(CUBLASLT_MATMUL_DESC_EPILOGUE,
                  (uint32_t)CUBLASLT_EPILOGUE_BIAS);
        attribute(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, (int32_t)CUDA_R_32F);
        attribute(CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                  (const void *)(memory + 768));
        prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, (uint64_t)256);
    }
    /* GELU of bfloat16; the workspace is its input. */
    void end_with_gelu(cublasLtEpilogue_t epilogue)
    {
        resize(&a, CUDA_R_16BF, 4, 2, 5);
        resize(&b, CUDA_R_16BF, 3, 2, 3);
        resize(&c, CUDA_R_16BF, 4, 3, 4);
        attribute(CUBLASLT_MATMUL_DESC_EPILOGUE, (uint32_t)epilogue);
        attribute(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, (int32_t)CUDA_R_16BF);
        attribute(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER,
                  (void *)(memory + 1280));
        attribute(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, (int64_t)8);
    }
    void resize(cublasLtMatrixLayout_t *layout, cudaDataType type,
                uint64_t rows, uint64_t columns, int64_t ld)
    {
        cublasLtMatrixLayoutDestroy(*layout);
        cublasLtMatrixLayoutCreate(layout, type, rows, columns, ld);
    }
    cublasStatus_t search()
    {
        int n;

        return cublasLtMatmulAlgoGetHeuristic(handle, desc, a, b, c, c,
                                              preference, 1, &found, &n);
    }
    cublasStatus_t multiply(size_t shift = 0)
    {
        const float alpha = 1, beta = 0;

        return cublasLtMatmul(handle, desc, &alpha, memory + shift, a,
                              memory + 256, b, &beta, memory + 512, c,
                              memory + 512, c, &found.algo, memory + 1024,
                              workspace_size, 0);
    }
};

/* The search, or otherwise the product, fails with `why` in its message. */
static void refused(const char *why, cublasStatus_t (*spoilt)(call &))
{
    call c;
    const cublasStatus_t status = spoilt(c);
    const char *const said = hostcuda_lt_counts().refused;

    ok(status == CUBLAS_STATUS_INVALID_VALUE && said && strstr(said, why),
       "refused: %s", said ? said : "nothing");
}

/* `ld` of the input of GELU. */
static void refused_ld(int64_t ld)
{
    call c;
    cublasStatus_t status;

    c.end_with_gelu(CUBLASLT_EPILOGUE_DGELU);
    c.attribute(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, ld);
    status = c.search();
    ok(status == CUBLAS_STATUS_INVALID_VALUE,
       "refused: GELU with a leading dimension of %d", (int)ld);
}

static void test_refusals_of_problems(void)
{
    refused("another size", [](call &c) {
        return c.attribute(CUBLASLT_MATMUL_DESC_TRANSA, (int64_t)0);
    });
    refused("another size", [](call &c) {
        return c.prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 256);
    });
    refused("do not fit", [](call &c) {
        c.attribute(CUBLASLT_MATMUL_DESC_TRANSB, (int32_t)CUBLAS_OP_N);
        return c.search();
    });
    refused("do not fit", [](call &c) {
        c.resize(&c.c, CUDA_R_32F, 5, 3, 5);
        return c.search();
    });
    refused("leading dimension", [](call &c) {
        c.resize(&c.a, CUDA_R_32F, 4, 2, 3);
        return c.search();
    });
    refused("of nothing", [](call &c) {
        c.resize(&c.a, CUDA_R_32F, 0, 2, 3);
        return c.search();
    });
    refused("go together", [](call &c) {
        c.resize(&c.b, CUDA_R_16BF, 3, 2, 3);
        return c.search();
    });
    refused("without a type", [](call &c) {
        c.attribute(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, (int32_t)-1);
        return c.search();
    });
    refused("without a pointer", [](call &c) {
        c.attribute(CUBLASLT_MATMUL_DESC_BIAS_POINTER, (const void *)NULL);
        return c.search();
    });
    refused("without a pointer", [](call &c) {
        c.end_with_gelu(CUBLASLT_EPILOGUE_DGELU);
        c.attribute(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, (void *)NULL);
        return c.search();
    });
    refused("a bias without a pointer", [](call &c) {
        c.end_with_gelu(CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
        c.attribute(CUBLASLT_MATMUL_DESC_BIAS_POINTER, (const void *)NULL);
        return c.search();
    });
    for (const int64_t ld : {0, 4, 12})
        refused_ld(ld);
    refused("not of bfloat16", [](call &c) {
        c.end_with_gelu(CUBLASLT_EPILOGUE_DGELU);
        c.resize(&c.c, CUDA_R_32F, 4, 3, 4);
        return c.search();
    });
    refused("an unknown epilogue", [](call &c) {
        c.attribute(CUBLASLT_MATMUL_DESC_EPILOGUE, (uint32_t)3);
        return c.search();
    });
    refused("all that it wants", [](call &c) {
        cublasLtMatrixLayoutDestroy(c.b);
        return c.search();
    });
    refused("never created",
            [](call &c) { return cublasLtDestroy(c.handle),
                                 cublasLtDestroy(c.handle); });
}

static void test_refusals_of_products(void)
{
    {
        call c;

        ok(!c.search() && !c.multiply(), "a product that is let pass");
        c.end_with_gelu(CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
        ok(!c.search() && !c.multiply(), "one with GELU is, too");
    }
    refused("other alignments",
            [](call &c) { return c.search(), c.multiply(16); });
    refused("another problem", [](call &c) {
        c.search();
        c.resize(&c.a, CUDA_R_32F, 4, 2, 4);
        return c.multiply();
    });
    refused("another problem", [](call &c) { return c.multiply(); });
    refused("another problem", [](call &c) {
        c.end_with_gelu(CUBLASLT_EPILOGUE_DGELU);
        c.search();
        c.attribute(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, (int64_t)16);
        return c.multiply();
    });
    refused("at 16 bytes", [](call &c) {
        c.end_with_gelu(CUBLASLT_EPILOGUE_DGELU);
        c.search();
        c.attribute(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER,
                    (void *)(c.memory + 1288));
        return c.multiply();
    });
    refused("at 16 bytes", [](call &c) {
        c.search();
        c.attribute(CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                    (const void *)(c.memory + 776));
        return c.multiply();
    });
    refused("a workspace", [](call &c) {
        c.workspace_size = 255;
        return c.search(), c.multiply();
    });
    refused("all that it wants", [](call &c) {
        c.search();
        cublasLtMatmulDescDestroy(c.desc);
        return c.multiply();
    });
}

int main(void)
{
    test_precision(TR_FLOAT);
    test_precision(TR_TF32);
    test_precision(TR_BF16);
    {
        const rig r = open_rig(TR_BF16);

        test_plans(r);
        tr_device_close(r.d);
    }
    for (const char *what :
         {"cublasLtCreate", "cublasLtMatmulDescCreate",
          "cublasLtMatmulDescSetAttribute", "cublasLtMatrixLayoutCreate",
          "cublasLtMatmulPreferenceCreate",
          "cublasLtMatmulPreferenceSetAttribute",
          "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul",
          "product by cuBLASLt", "cudaMalloc"})
        test_failures(what);
    test_message("cublasLtMatmulAlgoGetHeuristic:1=15",
                 "product of 2 x 5 x 3 bfloat16, B turned, "
                 "CUBLAS_STATUS_NOT_SUPPORTED: operation not supported");
    test_message("cublasLtMatmulAlgoGetHeuristic:1=14",
                 "product of 2 x 5 x 3 bfloat16, B turned, "
                 "CUBLAS_STATUS_INTERNAL_ERROR: unknown error");
    test_refusals_of_problems();
    test_refusals_of_products();
    return done();
}
