/*
 * device.cu - open and close a GPU, manage its memory, record failures.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cuda/device.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <new>

#include "cuda/attention.h"
#include "cuda/graphs.h"
#include "cuda/kernel.h"
#include "cuda/product.h"
#include "cuda/stage.h"

#define OLDEST 8 /* lowest major compute capability; 8 is A100 */

/* True if an earlier kernel may have caused the error. */
static bool is_late(cudaError_t error)
{
    return error == cudaErrorECCUncorrectable
           || error == cudaErrorIllegalAddress
           || error == cudaErrorLaunchTimeout || error == cudaErrorAssert
           || error == cudaErrorHardwareStackError
           || error == cudaErrorIllegalInstruction
           || error == cudaErrorMisalignedAddress
           || error == cudaErrorInvalidAddressSpace
           || error == cudaErrorInvalidPc || error == cudaErrorLaunchFailure;
}

bool tr_cuda_good(tr_cuda *c, cudaError_t error, const char *where)
{
    if (error && !c->failed) {
        c->failed = error;
        snprintf(c->why, sizeof c->why, "%s%s: %s",
                 is_late(error) ? "a kernel before " : "", where,
                 cudaGetErrorString(error));
    }
    return !c->failed;
}

bool tr_cuda_wait(tr_cuda *c, const char *where)
{
    if (c->await)
        c->await(c);
    return tr_cuda_good(c, cudaStreamSynchronize(c->stream), where);
}

bool tr_cuda_memory(tr_cuda *c, cudaError_t error, const char *where)
{
    if (error != cudaErrorMemoryAllocation)
        return tr_cuda_good(c, error, where);
    (void)cudaGetLastError();
    return false;
}

/* ---- Memory ---- */

static void *alloc(tr_device *d, size_t bytes)
{
    tr_cuda *const c = cuda_of(d);
    void *block = NULL;

    if (c->failed
        || !tr_cuda_memory(c, cudaMalloc(&block, bytes ? bytes : 1),
                           "GPU memory"))
        return NULL;
    return block;
}

static void release(tr_device *d, void *block)
{
    tr_cuda *const c = cuda_of(d);

    /* Free the block only if no operation can still use it. */
    if (tr_cuda_wait(c, "GPU memory"))
        tr_cuda_free(c, block);
}

static void fill(tr_device *d, void *to, int byte, size_t bytes)
{
    tr_cuda *const c = cuda_of(d);

    if (bytes > 0 && tr_cuda_asks(c, to, (uint64_t)byte, bytes))
        tr_cuda_good(c, cudaMemsetAsync(to, byte, bytes, c->stream),
                     "fill");
}

static void copy(tr_cuda *c, void *to, const void *from, size_t bytes,
                 cudaMemcpyKind kind)
{
    if (c->failed || bytes == 0)
        return;
    tr_cuda_good(c, cudaMemcpyAsync(to, from, bytes, kind, c->stream),
                 "copy");
    tr_cuda_wait(c, "copy");
}

static void upload(tr_device *d, void *to, const void *from, size_t bytes)
{
    copy(cuda_of(d), to, from, bytes, cudaMemcpyHostToDevice);
}

static void download(tr_device *d, void *to, const void *from, size_t bytes)
{
    copy(cuda_of(d), to, from, bytes, cudaMemcpyDeviceToHost);
}

void *tr_cuda_scratch(tr_cuda *c, size_t bytes)
{
    if (c->failed)
        return NULL;
    if (bytes <= c->scratch_bytes && c->scratch)
        return c->scratch;
    release(&c->device, c->scratch);
    c->scratch = NULL;
    c->scratch_bytes = 0;
    if (!tr_cuda_good(c, cudaMalloc(&c->scratch, bytes + bytes / 4 + 256),
                      "scratch"))
        return NULL;
    c->scratch_bytes = bytes + bytes / 4;
    return c->scratch;
}

/* ---- Weights in bfloat16 ---- */

/* Grid and block: N numbers per thread. */
template <int N>
static __global__ void __launch_bounds__(THREADS)
to_bf16_kernel(size_t n, const real *from, __nv_bfloat16 *to)
{
    const long long at = ((long long)blockIdx.x * blockDim.x + threadIdx.x) * N;
    real x[N];

    load_within<N>(from, at, 0, (long long)n, 0, x);
    store_within<N>(x, to, at, 0, (long long)n);
}

static void to_bf16(tr_cuda *c, cudaStream_t stream, const char *what,
                    size_t n, const real *from, __nv_bfloat16 *to)
{
    constexpr int N = WIDE<__nv_bfloat16>;

    if (aligned(from, to))
        launch(c, stream, what, dim3(blocks_of(n, THREADS * N)), THREADS, 0,
               to_bf16_kernel<N>, n, from, to);
    else
        launch(c, stream, what, dim3(blocks_of(n, THREADS)), THREADS, 0,
               to_bf16_kernel<1>, n, from, to);
}

void tr_cuda_to_values(tr_cuda *c, cudaStream_t stream, size_t n,
                       const real *from, void *to)
{
    if (c->bf16)
        to_bf16(c, stream, "values", n, from, (__nv_bfloat16 *)to);
    else if (!c->failed)
        tr_cuda_good(c,
                     cudaMemcpyAsync(to, from, n * sizeof *from,
                                     cudaMemcpyDeviceToDevice, stream),
                     "values");
}

static void weights_written(tr_device *d, const real *weights, size_t n)
{
    tr_cuda *const c = cuda_of(d);

    if (!c->bf16 || c->failed)
        return;
    if (n != c->n_weights) {
        release(d, c->copy);
        c->copy = NULL;
        c->n_weights = 0;
        if (!tr_cuda_good(c, cudaMalloc((void **)&c->copy,
                          (n + TR_SPARE) * sizeof *c->copy),
            "weights in bfloat16"))
            return;
        c->n_weights = n;
    }
    c->weights = weights;
    to_bf16(c, c->stream, "weights in bfloat16", n, weights, c->copy);
}

const void *tr_cuda_weight(tr_cuda *c, const real *weight)
{
    if (!c->bf16)
        return weight;
    if (c->copy == NULL || weight < c->weights
        || weight >= c->weights + c->n_weights) {
        tr_cuda_good(c, cudaErrorInvalidValue,
                     "weights_written() was not called for this weight");
        return NULL;
    }
    return c->copy + (weight - c->weights);
}

/* ---- finish() ---- */

static bool finish(tr_device *d, tr_results *results, const char **why)
{
    tr_cuda *const c = cuda_of(d);
    const size_t since = offsetof(tr_sums, sum);

    if (!c->failed) {
        tr_cuda_good(c,
                     cudaMemcpyAsync(c->told, c->sums, sizeof *c->sums,
                                     cudaMemcpyDeviceToHost, c->stream),
                     "the GPU");
        tr_cuda_good(c,
                     cudaMemsetAsync((char *)c->sums + since, 0,
                                     sizeof *c->sums - since, c->stream),
                     "the GPU");
        tr_cuda_wait(c, "the GPU");
    }
    *results = {};
    *why = c->failed ? c->why : NULL;
    if (c->failed)
        return false;
    for (int i = 0; i < TR_LOSSES; i++) {
        results->loss[i] = c->told->loss[i];
        results->sum[i] = c->told->sum[i];
    }
    results->gradient = c->told->gradient;
    results->steps = c->told->steps;
    results->graphs = c->graph_launches;
    results->launches = c->launches;
    c->graph_launches = c->launches = 0;
    return true;
}

/* ---- Open and close ---- */

static bool open_device(tr_cuda *c, unsigned nth)
{
    int count = 0, device;

    if (!tr_cuda_good(c, cudaGetDeviceCount(&count), "GPU"))
        return false;
    if (count < 1)
        return tr_cuda_good(c, cudaErrorNoDevice, "GPU");
    device = (int)(nth % (unsigned)count);
    /* Waits block the thread, so that the loader can use the CPU.  The flags
     * apply to the current device. */
    if (!tr_cuda_good(c, cudaSetDevice(device), "GPU")
        || !tr_cuda_good(
            c, cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync), "GPU")
        || !tr_cuda_good(
            c, cudaGetDeviceProperties(&c->properties, device), "GPU"))
        return false;
    if (c->properties.major < OLDEST) {
        c->failed = cudaErrorNoDevice;
        snprintf(c->why, sizeof c->why,
                 "GPU: %.80s has compute capability %d.%d; %d.0 is needed",
                 c->properties.name, c->properties.major,
                 c->properties.minor, OLDEST);
    }
    return !c->failed;
}

static bool open_streams(tr_cuda *c)
{
    const unsigned flags = cudaEventDisableTiming;

    tr_cuda_good(c, cudaStreamCreateWithFlags(&c->stream,
                 cudaStreamNonBlocking),
"streams");
    tr_cuda_good(c, cudaStreamCreateWithFlags(&c->copies,
                 cudaStreamNonBlocking),
"streams");
    tr_cuda_good(c, cudaEventCreateWithFlags(&c->fork, flags), "events");
    for (int i = 0; i < TR_GROUPS; i++) {
        tr_cuda_good(c, cudaStreamCreateWithFlags(&c->side[i],
                     cudaStreamNonBlocking),
"streams");
        tr_cuda_good(c, cudaEventCreateWithFlags(&c->joined[i], flags),
                     "events");
    }
    return !c->failed;
}

static bool open_sums(tr_cuda *c)
{
    return tr_cuda_good(c, cudaMalloc((void **)&c->sums, sizeof *c->sums),
                        "GPU memory")
           && tr_cuda_good(c,
                           cudaMallocHost((void **)&c->told,
                                          sizeof *c->told),
                           "pinned memory")
           && tr_cuda_good(c,
                           cudaMemsetAsync(c->sums, 0, sizeof *c->sums,
                                           c->stream),
                           "GPU memory");
}

static void close_device(tr_device *d)
{
    tr_cuda *const c = cuda_of(d);

    if (c->stream)
        cudaStreamSynchronize(c->stream);
    tr_graphs_close(c);
    tr_products_close(c);
    tr_chunks_close(c);
    tr_stages_close(c);
    cudaFree(c->sums);
    cudaFreeHost(c->told);
    cudaFree(c->scratch);
    cudaFree(c->copy);
    for (int i = 0; i < TR_GROUPS; i++) {
        if (c->joined[i])
            cudaEventDestroy(c->joined[i]);
        if (c->side[i])
            cudaStreamDestroy(c->side[i]);
    }
    if (c->fork)
        cudaEventDestroy(c->fork);
    if (c->copies)
        cudaStreamDestroy(c->copies);
    if (c->stream)
        cudaStreamDestroy(c->stream);
    delete c;
}

static void fill_table(tr_cuda *c)
{
    tr_ops *const ops = &c->table;

    ops->alloc = alloc;
    ops->release = release;
    ops->fill = fill;
    ops->upload = upload;
    ops->download = download;
    ops->weights_written = weights_written;
    ops->finish = finish;
    ops->close = close_device;
    ops->attention_kept = tr_cuda_attention_kept;
    ops->attention_scratch = tr_cuda_attention_scratch;
    ops->attention_forward = tr_cuda_attention_forward;
    ops->attention_backward = tr_cuda_attention_backward;
    tr_cuda_stage_ops(ops);
    tr_cuda_graphs_ops(ops);
    tr_cuda_linear_ops(ops);
    tr_cuda_norm_ops(ops);
    tr_cuda_gelu_ops(ops);
    tr_cuda_embed_ops(ops);
    tr_cuda_rotary_ops(ops);
    tr_cuda_heads_ops(ops);
    tr_cuda_lamb_ops(ops);
    c->device.ops = ops;
    c->device.value_size = c->bf16 ? sizeof(__nv_bfloat16) : sizeof(real);
}

/*
 * The driver's threads inherit the signal mask.  They must block all signals,
 * otherwise one could be delivered to one of these threads and handled late.
 */
static bool open_all(tr_cuda *c, unsigned nth)
{
    sigset_t all, before;
    bool good;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    good = open_device(c, nth) && open_streams(c) && open_sums(c)
           && tr_graphs_open(c) && tr_stages_open(c)
           && tr_products_open(c);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return good;
}

tr_device *tr_cuda_open(unsigned nth, tr_precision precision, char *why,
                        size_t size)
{
    tr_cuda *const c = new (std::nothrow) tr_cuda();

    if (c == NULL) {
        snprintf(why, size, "out of memory");
        return NULL;
    }
    c->precision = precision;
    c->bf16 = precision == TR_BF16;
    if (open_all(c, nth)) {
        fill_table(c);
        return &c->device;
    }
    snprintf(why, size, "%s", c->why);
    close_device(&c->device);
    return NULL;
}
