/*
 * device.h - what the files of the CUDA back end share.
 *
 * Built by nvcc for GPUs, and by g++ against tests/hostcuda for tests.  There
 * are no <<<>>>: launch() asks for all kernels, and keeps what fails.
 *
 * `real` is float (double in a build for tests), `value` is what activations
 * are stored as: real, or __nv_bfloat16.  Kernels are templates over value,
 * load() and store() turn one into the other, and all sums are real.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_DEVICE_H
#define TR_CUDA_DEVICE_H

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "cuda/open.h"

/* Sequences are grouped by length: Zeng et al. (2022), IV.A.2. */
#define TR_GROUPS 5 /* up to 128, 256, 384, 512 rows, and longer */
#define TR_GROUP_ROWS 128

#define TR_ATTENTION_KERNELS 9 /* three, for heads of up to 32, 64, 128 */

/* Spans of one group of a staged batch, long ones first. */
struct tr_group {
    const int32_t *span; /* [count] on the device: which of the batch's */
    uint32_t count;
    uint32_t longest; /* rows, of the host's knowledge */
};

/* The same for cuDNN, rounded up to a bucket: see sdpa.h. */
struct tr_spans {
    uint32_t count;   /* spans, empty ones too */
    uint32_t longest; /* rows, or some more */
    int32_t place;    /* of the batch's first row in that of all ranks */
    const int32_t *in, *out; /* [count + 1] on the device: offsets */
    const int32_t *length;   /* [count] rows */
};

/* Sums that steps leave for finish(). */
struct tr_sums {
    double loss[TR_LOSSES];
    double gradient;
    double sum[TR_LOSSES];
    unsigned long long steps;
    int halted; /* a loss or a gradient was not finite */
};

/* Rows whose sum goes into one row of a table; segments.h. */
struct tr_segments;

/* A batch where kernels can read it, with what attention wants of it. */
struct tr_staged {
    tr_batch batch; /* pointers of the device */
    struct tr_group group[TR_GROUPS];
    struct tr_spans spans; /* if cuDNN attends */
    const tr_segments *segments; /* on the host, its arrays on the device */
    bool mlm_distinct; /* no row is named twice in mlm_row */
    bool cls_distinct;
};

struct tr_products; /* product.h: cuBLASLt, or OpenBLAS on the host */
struct tr_stages;   /* stage.cu */
struct tr_chunks;   /* lamb.cu */
struct tr_graphs;   /* graphs.cu */
struct tr_ranks;    /* ranks.cc */
struct tr_nccl;     /* nccl.cc */
struct tr_sdpa;     /* sdpa.cc */

struct tr_cuda {
    tr_device device; /* first */
    tr_ops table;
    tr_precision precision;
    bool bf16;
    cudaStream_t stream; /* all operations, one after the other */
    cudaStream_t copies; /* batches on their way in */
    cudaStream_t side[TR_GROUPS];
    cudaEvent_t fork, joined[TR_GROUPS];
    struct tr_products *products;
    struct tr_stages *stages;
    struct tr_chunks *chunks;
    struct tr_graphs *graphs;
    uint64_t graph_launches, launches; /* since the last finish() */
    struct tr_ranks *ranks; /* one of these... */
    struct tr_nccl *nccl;   /* ...sums over them, if there are several */
    struct tr_sdpa *sdpa;   /* NULL: our kernels attend */
    size_t ragged;            /* numbers in a row of what it returns */
    /* Of nccl.cc: comes before each wait for `stream`; NULL: nothing does. */
    void (*await)(tr_cuda *c);
    struct tr_sums *sums; /* on the device */
    struct tr_sums *told; /* finish() copies them here */
    void *scratch;          /* what kernels of one operation hand on */
    size_t scratch_bytes;
    /* Weights as bfloat16, at the same places; NULL in the other modes. */
    const real *weights;
    size_t n_weights;
    __nv_bfloat16 *copy;
    cudaDeviceProp properties;
    const void *allowed[TR_ATTENTION_KERNELS + 1]; /* attention_kernel.h */
    /* The first failure; all that comes later does nothing. */
    cudaError_t failed;
    char why[160];
};

static inline tr_cuda *cuda_of(tr_device *d)
{
    return (tr_cuda *)d;
}

/* Keeps the first failure; true if there is none. */
bool tr_cuda_good(tr_cuda *c, cudaError_t error, const char *where);

/* Waits for all that was asked for in c->stream; true if nothing failed. */
bool tr_cuda_wait(tr_cuda *c, const char *where);

/* The same, but memory that is not there is no failure. */
bool tr_cuda_memory(tr_cuda *c, cudaError_t error, const char *where);

/*
 * The staged batch that holds this one, which stage() returned.  What is asked
 * for in c->stream from now on begins after its copy is there.
 */
const tr_staged *tr_cuda_staged(const tr_batch *batch);

/* The same for an array of it; other pointers are let pass. */
void tr_cuda_reads(tr_cuda *c, const void *array);

/*
 * Scratch for the kernels of one operation, in c->stream; the next operation
 * overwrites it.  NULL: no memory, or something failed before.
 */
void *tr_cuda_scratch(tr_cuda *c, size_t bytes);

/* A weight where products read it: the copy in bfloat16, if there is one. */
const void *tr_cuda_weight(tr_cuda *c, const real *weight);

/* Frees memory of the device, after which no graph may be launched. */
void tr_cuda_free(tr_cuda *c, void *block);

/*
 * Comes before all that is launched in c->stream.  False: it is not to be,
 * since something failed, or the step is launched again as a graph, in which it
 * is.  The arguments tell one from another.
 */
bool tr_cuda_asks(tr_cuda *c, const void *what, uint64_t size, uint64_t more);

/* Whether the step is launched again, so that nothing comes into a stream. */
bool tr_cuda_replays(const tr_cuda *c);

void tr_cuda_gelu(tr_cuda *c, size_t n, const void *u, void *y);
void tr_cuda_gelu_backward(tr_device *device, size_t n, const void *u,
                           void *dy);

/* The table that lamb.cu keeps from step to step. */
void tr_chunks_close(tr_cuda *c);

/* Each file fills in the operations that it has. */
void tr_cuda_embed_ops(tr_ops *ops);
void tr_cuda_gelu_ops(tr_ops *ops);
void tr_cuda_graphs_ops(tr_ops *ops);
void tr_cuda_heads_ops(tr_ops *ops);
void tr_cuda_lamb_ops(tr_ops *ops);
void tr_cuda_linear_ops(tr_ops *ops);
void tr_cuda_norm_ops(tr_ops *ops);
void tr_cuda_stage_ops(tr_ops *ops);

/* Calls f with a value of the type that activations are stored as. */
template <typename F> static void by_value(const tr_cuda *c, F f)
{
    if (c->bf16)
        f(__nv_bfloat16());
    else
        f(real());
}

/* Asks for a kernel in a stream, unless something has failed. */
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
