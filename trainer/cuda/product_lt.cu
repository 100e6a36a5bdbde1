/*
 * product_lt.cu - matrix products with cuBLASLt.
 *
 * cuBLASLt's matrices are column-major, so a row-major matrix is read as its
 * transpose.  C = A B is therefore computed as C^T = B^T A^T: cuBLASLt's A is
 * our B, and its rows are our columns.
 *
 * The algorithm for a shape is chosen once and reused by the other layers of a
 * step.  The next step usually has different row counts; its plans replace the
 * least recently used plans.  The choice is the first result of cuBLASLt's
 * heuristic.  If candidates were timed, the choice could differ in a resumed
 * run, and so could its results.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cublasLt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <new>

#include "cuda/product.h"

#define WORKSPACE ((size_t)32 << 20) /* NVIDIA's recommendation for sm_90 */

static_assert(sizeof(real) == sizeof(float), "cuBLASLt's epilogues need float");

/* The key of a plan. */
struct shape {
    uint64_t m, n, k;
    uint64_t a_stride, c_stride;
    uint32_t turned; /* bit 0: A, bit 1: B */
    uint32_t c_real;
    uint32_t epilogue;
    uint32_t beta;
    uint32_t alignment; /* alignment of all operands, in bytes */
    uint32_t spare;     /* padding, 0; shapes are compared byte by byte */
};

struct plan {
    struct shape shape;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulAlgo_t algorithm;
    size_t workspace;
    uint64_t used; /* last product that used it; 0: free */
    bool missing;  /* no algorithm supports this epilogue */
};

struct tr_products {
    cublasLtHandle_t handle;
    void *workspace;
    struct plan plans[TR_PLANS];
    uint64_t used; /* number of products so far */
};

static cudaError_t error_of(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_ALLOC_FAILED: return cudaErrorMemoryAllocation;
    case CUBLAS_STATUS_NOT_SUPPORTED: return cudaErrorNotSupported;
    default: return cudaErrorUnknown;
    }
}

static bool good(tr_cuda *c, cublasStatus_t status)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return true;
    return tr_cuda_good(c, error_of(status), cublasLtGetStatusName(status));
}

/* Like good(), but the message describes the product. */
static bool good_product(tr_cuda *c, const struct shape *s,
                         cublasStatus_t status)
{
    char what[128];

    if (status == CUBLAS_STATUS_SUCCESS)
        return true;
    snprintf(what, sizeof what,
             "product of %" PRIu64 " x %" PRIu64 " x %" PRIu64 " %s%s%s, %s",
             s->m, s->n, s->k, c->bf16 ? "bfloat16" : "float",
             s->turned & 1 ? ", A turned" : "",
             s->turned & 2 ? ", B turned" : "",
             cublasLtGetStatusName(status));
    return tr_cuda_good(c, error_of(status), what);
}

bool tr_products_open(tr_cuda *c)
{
    c->products = new (std::nothrow) tr_products();
    if (c->products == NULL)
        return tr_cuda_good(c, cudaErrorMemoryAllocation, "cuBLASLt");
    return good(c, cublasLtCreate(&c->products->handle))
           && tr_cuda_good(c, cudaMalloc(&c->products->workspace, WORKSPACE),
                           "workspace of cuBLASLt");
}

static void free_plan(plan *p)
{
    if (p->desc)
        cublasLtMatmulDescDestroy(p->desc);
    if (p->a)
        cublasLtMatrixLayoutDestroy(p->a);
    if (p->b)
        cublasLtMatrixLayoutDestroy(p->b);
    if (p->c)
        cublasLtMatrixLayoutDestroy(p->c);
    *p = {};
}

void tr_products_close(tr_cuda *c)
{
    if (c->products == NULL)
        return;
    for (plan &each : c->products->plans)
        free_plan(&each);
    cudaFree(c->products->workspace);
    if (c->products->handle)
        cublasLtDestroy(c->products->handle);
    delete c->products;
}

/* ---- Epilogues ---- */

static cublasLtEpilogue_t epilogue_of(const tr_product *p)
{
    return p->gelu == TR_GELU_VALUE   ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS
           : p->gelu == TR_GELU_SLOPE ? CUBLASLT_EPILOGUE_DGELU
           : p->bias                    ? CUBLASLT_EPILOGUE_BIAS
                                        : CUBLASLT_EPILOGUE_DEFAULT;
}

/* True if cuBLASLt might not support the epilogue. */
static bool is_rare(uint32_t epilogue)
{
    return epilogue != CUBLASLT_EPILOGUE_DEFAULT
           && epilogue != CUBLASLT_EPILOGUE_BIAS;
}

/* ---- A plan ---- */

/*
 * Returns the largest power of two, up to a cache line, that divides all
 * addresses.  Arrays start at cache lines; with a larger limit, layers could
 * not share plans.
 */
static uint32_t alignment_of(const tr_product *p)
{
    const uintptr_t all = (uintptr_t)p->a | (uintptr_t)p->b | (uintptr_t)p->c
                          | TR_LINE_BYTES;

    return (uint32_t)(all & -all);
}

static shape shape_of(const tr_product *p)
{
    shape s = {};

    s.m = p->m;
    s.n = p->n;
    s.k = p->k;
    s.a_stride = p->a_stride;
    s.c_stride = p->c_stride;
    s.turned = (uint32_t)p->a_turned | (uint32_t)p->b_turned << 1;
    s.c_real = p->c_real;
    s.epilogue = epilogue_of(p);
    s.beta = (uint32_t)p->beta;
    s.alignment = alignment_of(p);
    return s;
}

template <typename T>
static bool set(tr_cuda *c, const plan *plan,
                cublasLtMatmulDescAttributes_t which, T value)
{
    return good(c, cublasLtMatmulDescSetAttribute(plan->desc, which, &value,
                                                  sizeof value));
}

/* Sets the pointers of the epilogue, which can differ in each call. */
static bool point(tr_cuda *c, const tr_product *p, const plan *plan)
{
    return (p->bias == NULL
            || set(c, plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p->bias))
           && (p->gelu == TR_NO_GELU
               || (set(c, plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER,
                       p->u)
                   && set(c, plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD,
                          (int64_t)p->c_stride)));
}

/* Describes a row-major matrix. */
static bool lay_out(tr_cuda *c, cublasLtMatrixLayout_t *layout,
                    cudaDataType type, size_t rows, size_t columns,
                    size_t stride)
{
    return good(c, cublasLtMatrixLayoutCreate(layout, type, columns, rows,
                                              (int64_t)stride));
}

static bool describe(tr_cuda *c, const tr_product *p, plan *plan)
{
    const cudaDataType type = c->bf16 ? CUDA_R_16BF : CUDA_R_32F;
    const cudaDataType c_type = p->c_real ? CUDA_R_32F : type;
    const cublasComputeType_t compute = c->precision == TR_TF32
                                            ? CUBLAS_COMPUTE_32F_FAST_TF32
                                            : CUBLAS_COMPUTE_32F;
    const cublasOperation_t turn[2] = {CUBLAS_OP_N, CUBLAS_OP_T};

    if (!good(c, cublasLtMatmulDescCreate(&plan->desc, compute, CUDA_R_32F))
        || !set(c, plan, CUBLASLT_MATMUL_DESC_TRANSA, turn[p->b_turned])
        || !set(c, plan, CUBLASLT_MATMUL_DESC_TRANSB, turn[p->a_turned]))
        return false;
    if (!set(c, plan, CUBLASLT_MATMUL_DESC_EPILOGUE, (uint32_t)epilogue_of(p))
        || (p->bias
            && !set(c, plan, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
                    (int32_t)c_type))
        || !point(c, p, plan))
        return false;
    return lay_out(c, &plan->a, type, p->b_turned ? p->n : p->k,
                   p->b_turned ? p->k : p->n, p->b_turned ? p->k : p->n)
           && lay_out(c, &plan->b, type, p->a_turned ? p->k : p->m,
                      p->a_turned ? p->m : p->k, p->a_stride)
           && lay_out(c, &plan->c, c_type, p->m, p->n, p->c_stride);
}

static bool choose(tr_cuda *c, plan *plan)
{
    static const cublasLtMatmulPreferenceAttributes_t alignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const size_t workspace = WORKSPACE;
    const uint32_t in_float = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    cublasLtMatmulPreference_t want;
    cublasLtMatmulHeuristicResult_t found = {};
    cublasStatus_t status;
    int n = 0;

    if (!good(c, cublasLtMatmulPreferenceCreate(&want)))
        return false;
    status = cublasLtMatmulPreferenceSetAttribute(
        want, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
        sizeof workspace);
    if (!status)
        status = cublasLtMatmulPreferenceSetAttribute(
            want, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &in_float,
            sizeof in_float);
    for (int i = 0; i < 4 && !status; i++)
        status = cublasLtMatmulPreferenceSetAttribute(
            want, alignments[i], &plan->shape.alignment,
            sizeof plan->shape.alignment);
    if (!status)
        status = cublasLtMatmulAlgoGetHeuristic(
            c->products->handle, plan->desc, plan->a, plan->b, plan->c,
            plan->c, want, 1, &found, &n);
    cublasLtMatmulPreferenceDestroy(want);
    if (!status)
        status = n > 0 ? found.state : CUBLAS_STATUS_NOT_SUPPORTED;
    plan->missing = status == CUBLAS_STATUS_NOT_SUPPORTED
                    && is_rare(plan->shape.epilogue);
    if (plan->missing)
        return true;
    plan->algorithm = found.algo;
    plan->workspace = found.workspaceSize;
    return good_product(c, &plan->shape, status);
}

/* Returns the cached plan or a new plan for a product, or NULL on failure. */
static plan *plan_of(tr_cuda *c, const tr_product *p)
{
    tr_products *const all = c->products;
    const shape s = shape_of(p);
    plan *it = all->plans; /* the least recently used */

    for (plan &each : all->plans) {
        if (memcmp(&each.shape, &s, sizeof s) == 0) {
            each.used = ++all->used;
            return &each;
        }
        if (each.used < it->used)
            it = &each;
    }
    free_plan(it);
    it->shape = s;
    it->used = ++all->used;
    if (describe(c, p, it) && choose(c, it))
        return it;
    return NULL; /* later operations do nothing */
}

/*
 * Returns a bias that is aligned to 16 bytes: the given bias or a copy of it.
 * The key of a plan includes the alignment of matrices, but not of a bias.
 */
static const void *aligned_bias(tr_cuda *c, const tr_product *p)
{
    const size_t bytes = p->n * c->device.value_size;
    void *copy;

    if ((uintptr_t)p->bias % 16 == 0)
        return p->bias;
    copy = tr_cuda_scratch(c, bytes);
    if (copy)
        tr_cuda_good(c, cudaMemcpyAsync(copy, p->bias, bytes,
                     cudaMemcpyDeviceToDevice,
                     c->stream),
  "bias");
    return copy;
}

/* Fuses bfloat16 products whose operands are aligned for tensor cores. */
bool tr_cuda_fuses(tr_cuda *c, const tr_product *p)
{
    const plan *plan;

    if (!is_rare(epilogue_of(p)) || c->failed)
        return !is_rare(epilogue_of(p));
    if (!c->bf16 || p->m == 0 || p->n == 0 || p->k == 0 || p->a_stride % 8
        || p->c_stride % 8 || alignment_of(p) < 16
        || ((uintptr_t)p->u | (uintptr_t)p->bias) % 16)
        return false;
    plan = plan_of(c, p);
    return plan && !plan->missing;
}

void tr_cuda_multiply(tr_cuda *c, const tr_product *given)
{
    const float alpha = 1, beta = (float)given->beta;
    tr_product p = *given;
    const plan *plan;

    if (p.m == 0 || p.n == 0 || p.k == 0
        || !tr_cuda_asks(c, p.c, (uint64_t)p.m << 32 | p.n, p.k))
        return;
    p.bias = aligned_bias(c, given);
    plan = c->failed ? NULL : plan_of(c, &p);
    if (plan == NULL)
        return;
    if (!point(c, &p, plan))
        return;
    good_product(
        c, &plan->shape,
        cublasLtMatmul(c->products->handle, plan->desc, &alpha, p.b, plan->a,
                       p.a, plan->b, &beta, p.c, plan->c, p.c, plan->c,
                       &plan->algorithm, c->products->workspace,
                       plan->workspace, c->stream));
}
