/*
 * device.h - shared declarations of the CUDA back end.
 *
 * nvcc builds the back end for GPUs; g++ builds it for tests, against
 * tests/hostcuda.  Kernels are launched only with launch(), which records
 * failures, and never with <<<>>>.
 *
 * `real` is float (double in a test build).  `value` is the storage type of
 * activations: real or __nv_bfloat16.  Kernels are templates over value; load()
 * and store() convert, and all sums are real.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_DEVICE_H
#define TR_CUDA_DEVICE_H

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "cuda/open.h"

/* Sequences are grouped by length, as in Zeng et al. (2022), section IV.A.2. */
#define TR_GROUPS 5 /* spans of up to 128, 256, 384, 512 rows, and longer */
#define TR_GROUP_ROWS 128

#define TR_ATTENTION_KERNELS 18 /* 3 kernels, 3 widths, with masks or not */

/* The spans of one group of a staged batch, longest first. */
struct tr_group {
    const int32_t *span; /* [count] on the device: indices of spans */
    uint32_t count;
    uint32_t longest; /* length of the longest span, in rows */
};

/* The spans for cuDNN, with counts rounded up (sdpa.h). */
struct tr_spans {
    uint32_t count;   /* number of spans, including empty ones */
    uint32_t longest; /* length of the longest span, rounded up */
    int32_t place;    /* first row's number in the batch of all ranks */
    const int32_t *in, *out; /* [count + 1] on the device: offsets */
    const int32_t *length;   /* [count] lengths, in rows */
};

/* Sums over steps, read by finish(). */
struct tr_sums {
    double loss[TR_LOSSES];
    double gradient;
    double sum[TR_LOSSES];
    unsigned long long steps;
    int halted; /* a loss or a gradient was not finite */
};

/* The rows to add to each row of a table (segments.h). */
struct tr_segments;

/* A batch on the device, with data derived from it. */
struct tr_staged {
    tr_batch batch; /* with device pointers */
    struct tr_group group[TR_GROUPS];
    struct tr_spans spans; /* set if cuDNN computes attention */
    const tr_segments *segments; /* on the host; arrays on the device */
    bool mlm_distinct; /* mlm_row has no duplicates */
    bool cls_distinct;
};

struct tr_products; /* product.h: cuBLASLt, or OpenBLAS on the host */
struct tr_stages;   /* stage.cu */
struct tr_chunks;   /* lamb.cu */
struct tr_graphs;   /* graphs.cu */
struct tr_ranks;    /* ranks.cc */
struct tr_nccl;     /* nccl.cc */
struct tr_sdpa;     /* sdpa.cc */
struct tr_cuda;

/*
 * The exchange of lamb() with other ranks if each updates its shards (nccl.cc).
 * The sums, like lamb()'s kernels, run in c->stream's order.
 */
struct tr_exchange {
    /* Values of the shards, at the indices of moments: before lamb() the
     * summed gradients, after it the new weights. */
    void *own;
    void (*sum)(tr_cuda *c, double *x, size_t n);
    void (*sum_reals)(tr_cuda *c, real *x, size_t n);
    /* Starts to send `own` to all ranks, which store it as weights. */
    void (*send_weights)(tr_cuda *c, real *weights);
};

struct tr_cuda {
    tr_device device; /* first */
    tr_ops table;
    tr_precision precision;
    bool bf16;
    cudaStream_t stream; /* all operations, in order */
    cudaStream_t copies; /* copies of batches to the device */
    cudaStream_t side[TR_GROUPS];
    cudaEvent_t fork, joined[TR_GROUPS];
    struct tr_products *products;
    struct tr_stages *stages;
    struct tr_chunks *chunks;
    struct tr_graphs *graphs;
    uint64_t graph_launches, launches; /* since the last finish() */
    struct tr_ranks *ranks; /* sums over ranks, by the host... */
    struct tr_nccl *nccl;   /* ...or by NCCL; both NULL with one rank */
    struct tr_exchange *exchange; /* NULL if there are no shards */
    struct tr_sdpa *sdpa;   /* NULL: our own kernels */
    size_t ragged;            /* width of a row of cuDNN's output, in numbers */
    /* Called before each wait for `stream` (nccl.cc); may be NULL. */
    void (*await)(tr_cuda *c);
    struct tr_sums *sums; /* on the device */
    struct tr_sums *told; /* finish()'s copy of `sums` */
    void *scratch;          /* passes data between kernels of an operation */
    size_t scratch_bytes;
    /* The weights and their bfloat16 copy, at the same offsets.  NULL if
     * unused. */
    const real *weights;
    size_t n_weights;
    __nv_bfloat16 *copy;
    cudaDeviceProp properties;
    const void *allowed[TR_ATTENTION_KERNELS + 1]; /* attention_kernel.h */
    /* The first failure; all later operations do nothing. */
    cudaError_t failed;
    char why[160];
};

static inline tr_cuda *cuda_of(tr_device *d)
{
    return (tr_cuda *)d;
}

/*
 * Records `error` if it is the first failure.  Returns true if nothing has
 * failed so far.
 */
bool tr_cuda_good(tr_cuda *c, cudaError_t error, const char *where);

/* Records a failure if an operation does not implement its arguments. */
static inline void tr_cuda_takes(tr_cuda *c, bool implemented,
                                 const char *where)
{
    tr_cuda_good(c, implemented ? cudaSuccess : cudaErrorNotSupported, where);
}

/* Waits for all operations in c->stream.  Returns false after a failure. */
bool tr_cuda_wait(tr_cuda *c, const char *where);

/* Like tr_cuda_good(), but does not record lack of memory as a failure. */
bool tr_cuda_memory(tr_cuda *c, cudaError_t error, const char *where);

/*
 * Returns the staged batch for a pointer that stage() returned.  Later
 * operations in c->stream wait until the batch is copied.
 */
const tr_staged *tr_cuda_staged(const tr_batch *batch);

/* Does the same if the array belongs to a staged batch. */
void tr_cuda_reads(tr_cuda *c, const void *array);

/*
 * Returns scratch for the kernels of one operation in c->stream; the next
 * operation overwrites it.  Returns NULL if out of memory or after a failure.
 */
void *tr_cuda_scratch(tr_cuda *c, size_t bytes);

/*
 * Returns the address of a weight's bfloat16 copy, or `weight` if it has none.
 */
const void *tr_cuda_weight(tr_cuda *c, const real *weight);

/* Converts numbers to the device's values, in `stream`. */
void tr_cuda_to_values(tr_cuda *c, cudaStream_t stream, size_t n,
                       const real *from, void *to);

/* Frees device memory; invalidates all graphs. */
void tr_cuda_free(tr_cuda *c, void *block);

/*
 * Must be called before each launch in c->stream, with arguments that identify
 * the launch.  Returns false if the launch must be omitted, after a failure or
 * because the step is replayed as a graph that contains it.
 */
bool tr_cuda_asks(tr_cuda *c, const void *what, uint64_t size, uint64_t more);

/* True if the step is replayed, so that nothing may be launched. */
bool tr_cuda_replays(const tr_cuda *c);

void tr_cuda_gelu(tr_cuda *c, tr_activation act, size_t n, const void *u,
                  void *y);
void tr_cuda_gelu_backward(tr_device *device, tr_activation act, size_t n,
                           const void *u, void *dy);

/* Frees lamb.cu's table of chunks. */
void tr_chunks_close(tr_cuda *c);

/* Each sets the operations that its file implements. */
void tr_cuda_embed_ops(tr_ops *ops);
void tr_cuda_gelu_ops(tr_ops *ops);
void tr_cuda_graphs_ops(tr_ops *ops);
void tr_cuda_heads_ops(tr_ops *ops);
void tr_cuda_lamb_ops(tr_ops *ops);
void tr_cuda_linear_ops(tr_ops *ops);
void tr_cuda_norm_ops(tr_ops *ops);
void tr_cuda_rotary_ops(tr_ops *ops);
void tr_cuda_stage_ops(tr_ops *ops);

/* Calls f with a value of the type that stores activations. */
template <typename F> static void by_value(const tr_cuda *c, F f)
{
    if (c->bf16)
        f(__nv_bfloat16());
    else
        f(real());
}

/* Launches a kernel in a stream, if tr_cuda_asks() permits. */
template <typename... P, typename... A>
static void launch(tr_cuda *c, cudaStream_t stream, const char *name,
                   dim3 grid, unsigned threads, size_t shared,
                   void (*kernel)(P...), A... given)
{
    cudaLaunchConfig_t config = {};

    if (grid.x == 0 || grid.y == 0
        || !tr_cuda_asks(c, (const void *)kernel,
                         (uint64_t)grid.x << 32 | grid.y,
                         (uint64_t)threads << 32 | shared))
        return;
    config.gridDim = grid;
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    tr_cuda_good(c, cudaLaunchKernelEx(&config, kernel, P(given)...), name);
}

#endif /* TR_CUDA_DEVICE_H */
