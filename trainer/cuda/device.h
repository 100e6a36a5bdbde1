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
#ifndef BERT_CUDA_DEVICE_H
#define BERT_CUDA_DEVICE_H

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "cuda/open.h"

/* Sequences are grouped by length: Zeng et al. (2022), IV.A.2. */
#define BERT_GROUPS 5 /* up to 128, 256, 384, 512 rows, and longer */
#define BERT_GROUP_ROWS 128

#define BERT_ATTENTION_KERNELS 9 /* three, for heads of up to 32, 64, 128 */

/* Spans of one group of a staged batch, long ones first. */
struct bert_group {
    const int32_t *span; /* [count] on the device: which of the batch's */
    uint32_t count;
    uint32_t longest; /* rows, of the host's knowledge */
};

/* The same for cuDNN, rounded up to a bucket: see sdpa.h. */
struct bert_spans {
    uint32_t count;   /* spans, empty ones too */
    uint32_t longest; /* rows, or some more */
    int32_t place;    /* of the batch's first row in that of all ranks */
    const int32_t *in, *out; /* [count + 1] on the device: offsets */
    const int32_t *length;   /* [count] rows */
};

/* Sums that steps leave for finish(). */
struct bert_sums {
    double loss[BERT_LOSSES];
    double gradient;
    double sum[BERT_LOSSES];
    unsigned long long steps;
    int halted; /* a loss or a gradient was not finite */
};

/* Rows whose sum goes into one row of a table; segments.h. */
struct bert_segments;

/* A batch where kernels can read it, with what attention wants of it. */
struct bert_staged {
    bert_batch batch; /* pointers of the device */
    struct bert_group group[BERT_GROUPS];
    struct bert_spans spans; /* if cuDNN attends */
    const bert_segments *segments; /* on the host, its arrays on the device */
    bool mlm_distinct; /* no row is named twice in mlm_row */
    bool cls_distinct;
};

struct bert_products; /* product.h: cuBLASLt, or OpenBLAS on the host */
struct bert_stages;   /* stage.cu */
struct bert_chunks;   /* lamb.cu */
struct bert_graphs;   /* graphs.cu */
struct bert_ranks;    /* ranks.cc */
struct bert_nccl;     /* nccl.cc */
struct bert_sdpa;     /* sdpa.cc */

struct bert_cuda {
    bert_device device; /* first */
    bert_ops table;
    bert_precision precision;
    bool bf16;
    cudaStream_t stream; /* all operations, one after the other */
    cudaStream_t copies; /* batches on their way in */
    cudaStream_t side[BERT_GROUPS];
    cudaEvent_t fork, joined[BERT_GROUPS];
    struct bert_products *products;
    struct bert_stages *stages;
    struct bert_chunks *chunks;
    struct bert_graphs *graphs;
    uint64_t graph_launches, launches; /* since the last finish() */
    struct bert_ranks *ranks; /* one of these... */
    struct bert_nccl *nccl;   /* ...sums over them, if there are several */
    struct bert_sdpa *sdpa;   /* NULL: our kernels attend */
    size_t ragged;            /* numbers in a row of what it returns */
    /* Of nccl.cc: comes before each wait for `stream`; NULL: nothing does. */
    void (*await)(bert_cuda *c);
    struct bert_sums *sums; /* on the device */
    struct bert_sums *told; /* finish() copies them here */
    void *scratch;          /* what kernels of one operation hand on */
    size_t scratch_bytes;
    /* Weights as bfloat16, at the same places; NULL in the other modes. */
    const real *weights;
    size_t n_weights;
    __nv_bfloat16 *copy;
    cudaDeviceProp properties;
    const void *allowed[BERT_ATTENTION_KERNELS + 1]; /* attention_kernel.h */
    /* The first failure; all that comes later does nothing. */
    cudaError_t failed;
    char why[160];
};

static inline bert_cuda *cuda_of(bert_device *d)
{
    return (bert_cuda *)d;
}

/* Keeps the first failure; true if there is none. */
bool bert_cuda_good(bert_cuda *c, cudaError_t error, const char *where);

/* Waits for all that was asked for in c->stream; true if nothing failed. */
bool bert_cuda_wait(bert_cuda *c, const char *where);

/* The same, but memory that is not there is no failure. */
bool bert_cuda_memory(bert_cuda *c, cudaError_t error, const char *where);

/*
 * The staged batch that holds this one, which stage() returned.  What is asked
 * for in c->stream from now on begins after its copy is there.
 */
const bert_staged *bert_cuda_staged(const bert_batch *batch);

/* The same for an array of it; other pointers are let pass. */
void bert_cuda_reads(bert_cuda *c, const void *array);

/*
 * Scratch for the kernels of one operation, in c->stream; the next operation
 * overwrites it.  NULL: no memory, or something failed before.
 */
void *bert_cuda_scratch(bert_cuda *c, size_t bytes);

/* A weight where products read it: the copy in bfloat16, if there is one. */
const void *bert_cuda_weight(bert_cuda *c, const real *weight);

/* Frees memory of the device, after which no graph may be launched. */
void bert_cuda_free(bert_cuda *c, void *block);

/*
 * Comes before all that is launched in c->stream.  False: it is not to be,
 * since something failed, or the step is launched again as a graph, in which it
 * is.  The arguments tell one from another.
 */
bool bert_cuda_asks(bert_cuda *c, const void *what, uint64_t size,
                    uint64_t more);

/* Whether the step is launched again, so that nothing comes into a stream. */
bool bert_cuda_replays(const bert_cuda *c);

void bert_cuda_gelu(bert_cuda *c, size_t n, const void *u, void *y);
void bert_cuda_gelu_backward(bert_device *device, size_t n, const void *u,
                             void *dy);

/* The table that lamb.cu keeps from step to step. */
void bert_chunks_close(bert_cuda *c);

/* Each file fills in the operations that it has. */
void bert_cuda_embed_ops(bert_ops *ops);
void bert_cuda_gelu_ops(bert_ops *ops);
void bert_cuda_graphs_ops(bert_ops *ops);
void bert_cuda_heads_ops(bert_ops *ops);
void bert_cuda_lamb_ops(bert_ops *ops);
void bert_cuda_linear_ops(bert_ops *ops);
void bert_cuda_norm_ops(bert_ops *ops);
void bert_cuda_stage_ops(bert_ops *ops);

/* Calls f with a value of the type that activations are stored as. */
template <typename F> static void by_value(const bert_cuda *c, F f)
{
    if (c->bf16)
        f(__nv_bfloat16());
    else
        f(real());
}

/* Asks for a kernel in a stream, unless something has failed. */
template <typename... P, typename... A>
static void launch(bert_cuda *c, cudaStream_t stream, const char *name,
                   dim3 grid, unsigned threads, size_t shared,
                   void (*kernel)(P...), A... given)
{
    cudaLaunchConfig_t config = {};

    if (grid.x == 0 || grid.y == 0
        || !bert_cuda_asks(c, (const void *)kernel,
                           (uint64_t)grid.x << 32 | grid.y,
                           (uint64_t)threads << 32 | shared))
        return;
    config.gridDim = grid;
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    bert_cuda_good(c, cudaLaunchKernelEx(&config, kernel, P(given)...), name);
}

#endif /* BERT_CUDA_DEVICE_H */
