/*
 * product-lt-t.cc - products by product_lt.cu, with tests/hostcuda in the place
 * of cuBLASLt: their numbers, the plans that are kept, and failures.  The last
 * part is about what is refused there.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cuda_runtime.h>

#include <cublasLt.h>

#include "hostcuda.h"
#include "product.h"
#include "products.h"

/* ---- Plans ---- */

#define SIDE 8
#define LAYER 128 /* from one to the next: weight, bias, and some more */

/* Two layers of SIDE x SIDE, for up to so many rows. */
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
     * How many algorithms are looked for to multiply so many rows, from number
     * `first` of x on, in layer 0 or 1; -1 if the numbers are wrong.
     */
    int searches(size_t rows, size_t first = 0, size_t layer = 0) const
    {
        real *const weight = (real *)weights + layer * LAYER;
        const bert_linear l = {SIDE, SIDE, SIDE, weight,
                               weight + SIDE * SIDE, NULL, NULL};
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
    const layers l(r, BERT_PLANS + 1);
    bool good = true;

    for (size_t rows = 1; rows <= BERT_PLANS; rows++)
        good = l.searches(rows) == 1 && good;
    ok(good, "%s: an algorithm is looked for once for each shape", r.name);
    for (size_t rows = 1; rows <= BERT_PLANS; rows++)
        good = l.searches(rows) == 0 && good;
    ok(good, "%s: and %d of them are kept", r.name, BERT_PLANS);
    good = l.searches(1) == 0 && l.searches(BERT_PLANS + 1) == 1
           && l.searches(1) == 0 && l.searches(3) == 0 && l.searches(2) == 1;
    ok(good, "%s: one more takes the place of the least recently used",
       r.name);
    ok(objects() == 1 + 4 * BERT_PLANS, "%s: %u objects are alive", r.name,
       objects());
}

/* Nothing but what a plan is for differs. */
static void test_shapes(const rig &r)
{
    const unsigned before = hostcuda_lt_counts().heuristics;
    int searches;

    test_linear(r, SIDE, SIDE, SIDE, SIDE);
    searches = (int)(hostcuda_lt_counts().heuristics - before);
    ok(searches == 5, "%s: five products of %d x %d x %d have %d plans",
       r.name, SIDE, SIDE, SIDE, searches);

    const layers l(r, 70);

    ok(l.searches(9) == 1 && l.searches(9, 0, 1) == 0,
       "%s: two layers have one plan", r.name);
    ok(l.searches(9, 1) == 1 && l.searches(9, 1) == 0 && l.searches(9) == 0,
       "%s: numbers that lie elsewhere have another plan", r.name);
}

static void test_precision(bert_precision precision)
{
    const unsigned before = objects();
    const rig r = open_rig(precision);

    test_products(r);
    test_shapes(r);
    bert_device_close(r.d);
    ok(objects() == before, "%s: all objects are destroyed", r.name);
}

/* ---- Failures ---- */

/* A product, on what may fail; true if it did not. */
static bool run_product(char *why, size_t size)
{
    bert_device *const d = bert_cuda_open(0, BERT_BF16, why, size);
    const char *text = NULL;
    bert_results results;
    bool good;

    if (d == NULL)
        return false;
    real *const w = (real *)d->ops->alloc(d, 4 * 24 * sizeof *w);
    const bert_linear l = {3, 5, 5, w, w + 15, NULL, NULL};

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
    bert_device_close(d);
    return good;
}

/* Lets each call of a kind fail, one after the other, until none does. */
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

/* ---- What is refused in the place of cuBLASLt ---- */

/* D = op(A) op(B) + bias, 4 x 3 numbers of float, and all that it wants. */
struct call {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t found = {};
    char *memory; /* 256 bytes each: A, B, D, bias, workspace */
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
        cudaMalloc(&memory, 5 * 256);
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

/* `why` is in the refusal of the search, or else of the product. */
static void refused(const char *why, cublasStatus_t (*spoilt)(call &))
{
    call c;
    const cublasStatus_t status = spoilt(c);
    const char *const said = hostcuda_lt_counts().refused;

    ok(status == CUBLAS_STATUS_INVALID_VALUE && said && strstr(said, why),
       "refused: %s", said ? said : "nothing");
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
    }
    refused("other alignments",
            [](call &c) { return c.search(), c.multiply(16); });
    refused("another problem", [](call &c) {
        c.search();
        c.resize(&c.a, CUDA_R_32F, 4, 2, 4);
        return c.multiply();
    });
    refused("another problem", [](call &c) { return c.multiply(); });
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
    test_precision(BERT_FLOAT);
    test_precision(BERT_TF32);
    test_precision(BERT_BF16);
    {
        const rig r = open_rig(BERT_BF16);

        test_plans(r);
        bert_device_close(r.d);
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
