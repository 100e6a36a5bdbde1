/*
 * cublaslt.cc - the calls of cublasLt.h.
 *
 * A product is a host call in the stream.  Errors that cuBLASLt does not
 * detect, or only on a GPU, return CUBLAS_STATUS_INVALID_VALUE and print the
 * reason on stderr.  Algorithms remember the problem they were chosen for,
 * require the whole workspace they may use, and round as coarsely as allowed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cublasLt.h"
#include "cuda_bf16.h"
#include "internal.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

using namespace hostcuda;

static hostcuda_lt_count counts;

hostcuda_lt_count hostcuda_lt_counts()
{
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);

    return counts;
}

static cublasStatus_t refuse(const char *why)
{
    counts.refused = why;
    std::fprintf(stderr, "# cuBLASLt refuses %s\n", why);
    return CUBLAS_STATUS_INVALID_VALUE;
}

/* The error to return, if any: $HOSTCUDA_FAIL names CUDA's errors or these. */
static cublasStatus_t ordered(const char *call)
{
    const cudaError_t error = begin(call);

    counts.refused = nullptr;
    if (error == cudaErrorMemoryAllocation)
        return CUBLAS_STATUS_ALLOC_FAILED;
    return (int)error > CUBLAS_STATUS_NOT_SUPPORTED
               ? CUBLAS_STATUS_EXECUTION_FAILED
               : (cublasStatus_t)error;
}

#define LT_CALL                                                               \
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);               \
    if (const cublasStatus_t wrong = ordered(__func__))                       \
        return wrong

const char *cublasLtGetStatusName(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR: return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    }
    return "";
}

/* -- objects ------------------------------------------------------------- */

struct hostcuda_lt_handle {
    bool destroyed;
};

struct hostcuda_lt_desc {
    bool destroyed;
    cublasComputeType_t compute;
    cudaDataType_t scale;
    int32_t turned[2]; /* A, B */
    uint32_t epilogue;
    void *bias;
    int32_t bias_type;
    void *aux; /* the input of GELU */
    int64_t aux_ld;
};

struct hostcuda_lt_layout {
    bool destroyed;
    cudaDataType type;
    uint64_t rows, columns;
    int64_t ld;
};

struct hostcuda_lt_preference {
    bool destroyed;
    uint64_t workspace;
    uint32_t reductions;
    uint32_t alignment[4]; /* A, B, C, D */
};

/* Never freed, so that the use of a destroyed one is detected. */
template <typename T> static cublasStatus_t create(T **to, const T &object)
{
    static std::deque<T> &all = *new std::deque<T>;

    all.push_back(object);
    *to = &all.back();
    counts.created++;
    return CUBLAS_STATUS_SUCCESS;
}

/* Cannot be made to fail: it may be called to clean up after a failure. */
template <typename T> static cublasStatus_t destroy(T *object)
{
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);

    if (!object || object->destroyed)
        return refuse("an object that was destroyed, or never created");
    object->destroyed = true;
    counts.destroyed++;
    return CUBLAS_STATUS_SUCCESS;
}

template <typename... T> static bool live(const T *...objects)
{
    return (... && (objects && !objects->destroyed));
}

template <typename T>
static cublasStatus_t set(T *attribute, const void *value, size_t size)
{
    if (!value || size != sizeof *attribute)
        return refuse("an attribute of another size");
    std::memcpy(attribute, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    LT_CALL;
    return create(handle, {});
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    return destroy(handle);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc,
                                        cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    LT_CALL;
    return create(desc, {false, compute, scale, {CUBLAS_OP_N, CUBLAS_OP_N},
                         CUBLASLT_EPILOGUE_DEFAULT, nullptr, -1, nullptr, 0});
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    return destroy(desc);
}

cublasStatus_t
cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                               cublasLtMatmulDescAttributes_t which,
                               const void *value, size_t size)
{
    LT_CALL;
    if (!live(desc))
        return refuse("an invalid descriptor");
    switch (which) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return set(&desc->turned[0], value, size);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return set(&desc->turned[1], value, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return set(&desc->epilogue, value, size);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return set(&desc->bias, value, size);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
        return set(&desc->bias_type, value, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
        return set(&desc->aux, value, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
        return set(&desc->aux_ld, value, size);
    }
    return refuse("an unknown attribute");
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout,
                                          cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t ld)
{
    LT_CALL;
    return create(layout, {false, type, rows, columns, ld});
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    return destroy(layout);
}

cublasStatus_t
cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    LT_CALL;
    return create(preference, {false, 0, CUBLASLT_REDUCTION_SCHEME_MASK,
                               {256, 256, 256, 256}});
}

cublasStatus_t
cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    return destroy(preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t preference,
    cublasLtMatmulPreferenceAttributes_t which, const void *value,
    size_t size)
{
    LT_CALL;
    if (!live(preference))
        return refuse("invalid preferences");
    switch (which) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return set(&preference->workspace, value, size);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return set(&preference->reductions, value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        return set(&preference->alignment
                        [which - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES],
                   value, size);
    }
    return refuse("an unknown preference");
}

/* -- compatibility ------------------------------------------------------- */

/* D = alpha op(A) op(B) + beta C, D being m x n. */
struct problem {
    hostcuda_lt_desc desc;
    hostcuda_lt_layout a, b, c, d;

    uint64_t m() const { return d.rows; }
    uint64_t n() const { return d.columns; }
    uint64_t k() const { return desc.turned[0] ? a.rows : a.columns; }
};

static bool is_fit(const hostcuda_lt_layout &x, bool turned, uint64_t rows,
                   uint64_t columns)
{
    return (turned ? x.columns : x.rows) == rows
           && (turned ? x.rows : x.columns) == columns;
}

static const char *misfit_of_types(const problem &p)
{
    const cudaDataType in = p.a.type, out = p.d.type;

    if (p.b.type != in || p.c.type != out || p.desc.scale != CUDA_R_32F
        || (in != CUDA_R_32F && in != CUDA_R_16BF)
        || (out != CUDA_R_32F && out != in)
        || (in != CUDA_R_32F && p.desc.compute != CUBLAS_COMPUTE_32F))
        return "types that do not go together";
    return nullptr;
}

static bool has_gelu(const hostcuda_lt_desc &desc)
{
    return desc.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS
           || desc.epilogue == CUBLASLT_EPILOGUE_DGELU;
}

static bool has_bias(const hostcuda_lt_desc &desc)
{
    return desc.epilogue == CUBLASLT_EPILOGUE_BIAS
           || desc.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}

static const char *misfit_of_gelu(const problem &p)
{
    if (!p.desc.aux)
        return "GELU without a pointer to its input";
    if ((uintptr_t)p.desc.aux % 16)
        return "GELU of an input that does not lie at 16 bytes";
    if (p.desc.aux_ld % 8 || p.desc.aux_ld < 0
        || (uint64_t)p.desc.aux_ld < p.m())
        return "GELU with a leading dimension that is short, or odd";
    return p.d.type == CUDA_R_16BF ? nullptr : "GELU that is not of bfloat16";
}

static const char *misfit_of_epilogue(const problem &p)
{
    const uint32_t epilogue = p.desc.epilogue;

    if (has_gelu(p.desc))
        if (const char *wrong = misfit_of_gelu(p))
            return wrong;
    if (epilogue == CUBLASLT_EPILOGUE_DEFAULT
        || epilogue == CUBLASLT_EPILOGUE_DGELU)
        return nullptr;
    if (!has_bias(p.desc))
        return "an unknown epilogue";
    if (!p.desc.bias)
        return "a bias without a pointer";
    if ((uintptr_t)p.desc.bias % 16)
        return "a bias that does not lie at 16 bytes";
    return p.desc.bias_type == p.d.type ? nullptr : "a bias without a type";
}

/* The reason a problem is invalid; null if it is valid. */
static const char *misfit_of(const problem &p)
{
    for (const hostcuda_lt_layout *x : {&p.a, &p.b, &p.c, &p.d}) {
        if (x->rows == 0 || x->columns == 0)
            return "a matrix of nothing";
        if (x->ld < 0 || (uint64_t)x->ld < x->rows)
            return "a leading dimension below the rows";
    }
    for (int32_t turned : p.desc.turned)
        if (turned != CUBLAS_OP_N && turned != CUBLAS_OP_T)
            return "an unknown transposition";
    if (!is_fit(p.a, p.desc.turned[0], p.m(), p.k())
        || !is_fit(p.b, p.desc.turned[1], p.k(), p.n())
        || !is_fit(p.c, false, p.m(), p.n()))
        return "matrices that do not fit each other";
    if (const char *wrong = misfit_of_types(p))
        return wrong;
    return misfit_of_epilogue(p);
}

/* The problem that an algorithm was chosen for. */
struct algorithm {
    uint64_t digest; /* of the problem */
    uint64_t workspace;
    uint32_t alignment[4];
    uint32_t in_halves; /* sums; the first is rounded as D is */
};

static_assert(sizeof(algorithm) <= sizeof(cublasLtMatmulAlgo_t),
              "cublasLtMatmulAlgo_t has room for it");

static uint64_t digest_of(const problem &p)
{
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    const auto add = [&](uint64_t x) {
        digest = (digest ^ x) * UINT64_C(0x9e3779b97f4a7c15);
        digest ^= digest >> 29;
    };

    add((uint64_t)p.desc.compute);
    add(p.desc.epilogue);
    add(has_gelu(p.desc) ? (uint64_t)p.desc.aux_ld : 0);
    for (int32_t turned : p.desc.turned)
        add((uint64_t)turned);
    for (const hostcuda_lt_layout *x : {&p.a, &p.b, &p.c, &p.d}) {
        add((uint64_t)x->type);
        add(x->rows);
        add(x->columns);
        add((uint64_t)x->ld);
    }
    return digest;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
    cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int wanted,
    cublasLtMatmulHeuristicResult_t *results, int *found)
{
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);
    const cublasStatus_t status = ordered(__func__);

    if (status == CUBLAS_STATUS_NOT_SUPPORTED
        || status == CUBLAS_STATUS_INTERNAL_ERROR) {
        results->state = status;
        *found = status == CUBLAS_STATUS_INTERNAL_ERROR;
        return CUBLAS_STATUS_SUCCESS; /* of the search itself */
    }
    if (status)
        return status;
    if (!live(handle) || !live(desc) || !live(a, b, c, d) || !live(preference)
        || wanted < 1 || !results || !found)
        return refuse("a search for an algorithm without all that it wants");

    const problem p = {*desc, *a, *b, *c, *d};
    algorithm chosen = {};

    if (const char *wrong = misfit_of(p))
        return refuse(wrong);
    chosen.digest = digest_of(p);
    chosen.workspace = preference->workspace;
    std::copy(preference->alignment, preference->alignment + 4,
              chosen.alignment);
    chosen.in_halves = (preference->reductions
                        & (CUBLASLT_REDUCTION_SCHEME_INPLACE
                           | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE)) != 0;
    *results = {};
    std::memcpy(results->algo.data, &chosen, sizeof chosen);
    results->workspaceSize = chosen.workspace;
    *found = 1;
    counts.heuristics++;
    return CUBLAS_STATUS_SUCCESS;
}

/* -- a product ----------------------------------------------------------- */

struct product {
    problem p;
    const void *a, *b, *c;
    void *d;
    float alpha, beta;
    algorithm how;
    char *workspace;
};

static float number(cudaDataType type, const void *p, size_t at)
{
    return type == CUDA_R_16BF
               ? __bfloat162float(((const __nv_bfloat16 *)p)[at])
               : ((const float *)p)[at];
}

static void put(cudaDataType type, void *p, size_t at, float x)
{
    if (type == CUDA_R_16BF)
        ((__nv_bfloat16 *)p)[at] = __float2bfloat16(x);
    else
        ((float *)p)[at] = x;
}

/* Rounded to TF32's 10 bits of mantissa. */
static float as_tf32(float x)
{
    const unsigned u = __float_as_uint(x);

    return __uint_as_float((u + 0xfff + (u >> 13 & 1)) & ~0x1fffu);
}

/* op(A) row by row, or op(B) column by column. */
static std::vector<float> operand(const problem &p, const void *from,
                                  const hostcuda_lt_layout &layout,
                                  bool by_columns, uint64_t lines)
{
    const bool tf32 = p.desc.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    std::vector<float> x(lines * p.k());

    for (uint64_t i = 0; i < x.size(); i++) {
        const uint64_t line = i / p.k(), l = i % p.k();
        const uint64_t at = by_columns ? line * (uint64_t)layout.ld + l
                                       : l * (uint64_t)layout.ld + line;

        x[i] = number(layout.type, from, at);
        x[i] = tf32 ? as_tf32(x[i]) : x[i];
    }
    return x;
}

static float dot(uint64_t n, const float *x, const float *y)
{
    double sum = 0;

    for (uint64_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)y[i];
    return (float)sum;
}

/* The tanh approximation, of x before rounding. */
static float apply_gelu(const problem &p, uint64_t at, float x)
{
    const bool is_slope = p.desc.epilogue == CUBLASLT_EPILOGUE_DGELU;
    const double u = is_slope ? number(p.d.type, p.desc.aux, at) : x;
    const double t = std::tanh(std::sqrt(2 / M_PI)
                               * (u + 0.044715 * u * u * u));

    if (is_slope)
        return (float)(x * ((1 + t) / 2
                            + u / 2 * (1 - t * t) * std::sqrt(2 / M_PI)
                                  * (1 + 3 * 0.044715 * u * u)));
    put(p.d.type, p.desc.aux, at, x);
    return (float)(u / 2 * (1 + t));
}

static void run_product(const product &w)
{
    const problem &p = w.p;
    const uint64_t m = p.m(), n = p.n(), k = p.k();
    const uint64_t half = w.how.in_halves ? k / 2 : 0;
    const std::vector<float> a
        = operand(p, w.a, p.a, p.desc.turned[0], m);
    const std::vector<float> b
        = operand(p, w.b, p.b, !p.desc.turned[1], n);

    if (w.how.workspace)
        w.workspace[0] = w.workspace[w.how.workspace - 1] = 0;
    for (uint64_t i = 0; i < m * n; i++) {
        const float *const x = &a[i % m * k], *const y = &b[i / m * k];
        const uint64_t at = i / m * (uint64_t)p.d.ld + i % m;
        float first = dot(half, x, y), sum;

        put(p.d.type, &first, 0, first);
        sum = number(p.d.type, &first, 0) + dot(k - half, x + half, y + half);
        sum *= w.alpha;
        if (w.beta != 0)
            sum += w.beta * number(p.c.type, w.c, i / m * (uint64_t)p.c.ld
                                                      + i % m);
        if (has_bias(p.desc))
            sum += number(p.d.type, p.desc.bias, i % m);
        if (has_gelu(p.desc))
            sum = apply_gelu(p, i / m * (uint64_t)p.desc.aux_ld + i % m, sum);
        put(p.d.type, w.d, at, sum);
    }
}

/* The reason a product's pointers or algorithm are invalid, or null. */
static const char *misuse_of(const product &w, size_t workspace_size)
{
    const void *const pointers[] = {w.a, w.b, w.c, w.d};

    if (w.how.digest != digest_of(w.p))
        return "an algorithm that was chosen for another problem";
    for (int i = 0; i < 4; i++)
        if (!pointers[i] || w.how.alignment[i] == 0
            || (uintptr_t)pointers[i] % w.how.alignment[i])
            return "an algorithm that was chosen for other alignments";
    if (workspace_size < w.how.workspace
        || (w.how.workspace
            && (!w.workspace || (uintptr_t)w.workspace % 256)))
        return "a workspace that is too small, or not aligned";
    if (w.c == w.d && w.p.c.ld != w.p.d.ld)
        return "a product in place with two layouts";
    return nullptr;
}

cublasStatus_t
cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
               const void *alpha, const void *a,
               cublasLtMatrixLayout_t a_layout, const void *b,
               cublasLtMatrixLayout_t b_layout, const void *beta,
               const void *c, cublasLtMatrixLayout_t c_layout, void *d,
               cublasLtMatrixLayout_t d_layout,
               const cublasLtMatmulAlgo_t *algo, void *workspace,
               size_t workspace_size, cudaStream_t stream)
{
    LT_CALL;
    if (!live(handle) || !live(desc)
        || !live(a_layout, b_layout, c_layout, d_layout) || !alpha || !beta
        || !algo)
        return refuse("a product without all that it wants");

    product w = {{*desc, *a_layout, *b_layout, *c_layout, *d_layout}, a, b, c,
                 d, *(const float *)alpha, *(const float *)beta, {},
                 (char *)workspace};

    std::memcpy(&w.how, algo->data, sizeof w.how);
    if (const char *wrong = misfit_of(w.p))
        return refuse(wrong);
    if (const char *wrong = misuse_of(w, workspace_size))
        return refuse(wrong);
    counts.products++;
    return enqueue(stream, "product by cuBLASLt", [w] { run_product(w); },
                   {a, b, c, d, desc->bias, desc->aux, workspace})
               ? CUBLAS_STATUS_EXECUTION_FAILED
               : CUBLAS_STATUS_SUCCESS;
}
