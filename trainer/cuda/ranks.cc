/*
 * ranks.cc - sum gradients over ranks, through the host.
 *
 * This method is used without NCCL, or if ranks share a GPU.  Each array is
 * copied to pinned memory in a separate stream while kernels compute the next
 * array.  MPI sums it there, while later arrays are copied.
 *
 * A rank whose device has failed still joins the sums, with undefined values,
 * so that no rank waits forever.  All ranks agree to continue before they use
 * the sums.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include <new>

#include "cuda/ranks.h"
#include "run/shutdown.h"

#define WHERE "sums over ranks"

/* A sum in progress. */
struct sum {
    tr_range bucket;
    cudaEvent_t copied;
};

struct tr_ranks {
    const tr_workers *all;
    real *gradients; /* on the device... */
    real *host;      /* ...and the pinned copy */
    sum *sums; /* of the buckets */
    size_t n_sums;
    size_t *begun; /* indices of sums, in the order of their start */
    size_t n_begun;
    cudaStream_t stream;
    cudaEvent_t computed;
    void (*close)(tr_device *d); /* the overridden function */
};

/* ---- Sums ---- */

static void sum_begin(tr_device *d, size_t bucket)
{
    tr_cuda *const c = cuda_of(d);
    tr_ranks *const r = c->ranks;
    const sum *const s = &r->sums[bucket];
    const size_t first = s->bucket.first;

    r->begun[r->n_begun++] = bucket;
    if (c->failed)
        return;
    tr_cuda_good(c, cudaEventRecord(r->computed, c->stream), WHERE);
    tr_cuda_good(c, cudaStreamWaitEvent(r->stream, r->computed, 0), WHERE);
    tr_cuda_good(c,
                 cudaMemcpyAsync(r->host + first, r->gradients + first,
                                 s->bucket.count * sizeof(real),
                                 cudaMemcpyDeviceToHost, r->stream),
                 WHERE);
    tr_cuda_good(c, cudaEventRecord(s->copied, r->stream), WHERE);
}

/* Waits for a copy, and makes progress on other sums meanwhile. */
static void wait_for(tr_cuda *c, const sum *s)
{
    const tr_ranks *const r = c->ranks;
    cudaError_t error = cudaErrorNotReady;

    while (!c->failed && error == cudaErrorNotReady) {
        tr_workers_sum_begin(r->all, r->host, 0);
        error = cudaEventQuery(s->copied);
    }
    tr_cuda_good(c, error, WHERE);
}

static bool sum_end(tr_device *d)
{
    tr_cuda *const c = cuda_of(d);
    tr_ranks *const r = c->ranks;

    for (size_t i = 0; i < r->n_begun; i++) {
        const sum *const s = &r->sums[r->begun[i]];

        wait_for(c, s);
        tr_workers_sum_begin(r->all, r->host + s->bucket.first,
                             s->bucket.count);
    }
    shutdown_allow();
    tr_workers_sum_end(r->all);
    shutdown_forbid();
    for (size_t i = 0; i < r->n_begun && !c->failed; i++) {
        const tr_range bucket = r->sums[r->begun[i]].bucket;

        tr_cuda_good(c,
                     cudaMemcpyAsync(r->gradients + bucket.first,
                                     r->host + bucket.first,
                                     bucket.count * sizeof(real),
                                     cudaMemcpyHostToDevice, c->stream),
                     WHERE);
    }
    r->n_begun = 0;
    return !c->failed;
}

/* ---- Open and close ---- */

static void close_ranks(tr_device *d)
{
    tr_ranks *const r = cuda_of(d)->ranks;
    void (*const close)(tr_device *) = r->close;

    if (r->stream)
        cudaStreamSynchronize(r->stream);
    cudaStreamSynchronize(cuda_of(d)->stream);
    for (size_t i = 0; i < r->n_sums; i++)
        if (r->sums[i].copied)
            cudaEventDestroy(r->sums[i].copied);
    free(r->sums);
    free(r->begun);
    if (r->computed)
        cudaEventDestroy(r->computed);
    if (r->stream)
        cudaStreamDestroy(r->stream);
    cudaFreeHost(r->host);
    delete r;
    close(d);
}

/* Returns the number of gradients in all buckets, or 0 after a failure. */
static size_t open_sums(tr_cuda *c, tr_ranks *r, const tr_range *buckets,
                        size_t n)
{
    const unsigned flags = cudaEventDisableTiming;
    size_t numbers = 0;

    r->sums = (sum *)calloc(n, sizeof *r->sums);
    r->begun = (size_t *)calloc(n, sizeof *r->begun);
    if (r->sums == NULL || r->begun == NULL)
        tr_cuda_good(c, cudaErrorMemoryAllocation, WHERE);
    for (size_t i = 0; i < n && !c->failed; i++) {
        r->sums[r->n_sums++].bucket = buckets[i];
        numbers += buckets[i].count;
        tr_cuda_good(c, cudaEventCreateWithFlags(&r->sums[i].copied, flags),
                     WHERE);
    }
    tr_cuda_good(c, cudaEventCreateWithFlags(&r->computed, flags), WHERE);
    return c->failed ? 0 : numbers;
}

/* True if each rank has its own GPU.  All ranks get the same result. */
static bool are_apart(const tr_cuda *c, const tr_workers *w)
{
    double shared = 0;

    for (uint32_t rank = 0; rank < w->ranks; rank++) {
        uint32_t part[sizeof c->properties.uuid / sizeof(uint32_t)];
        double id[sizeof part / sizeof *part];
        bool same = rank != w->rank;

        memcpy(part, &c->properties.uuid, sizeof part);
        for (size_t i = 0; i < sizeof part / sizeof *part; i++)
            id[i] = rank == w->rank ? part[i] : 0;
        tr_workers_sum(w, id, sizeof part / sizeof *part);
        for (size_t i = 0; i < sizeof part / sizeof *part; i++)
            same = same && id[i] == part[i];
        shared += same;
    }
    tr_workers_sum(w, &shared, 1);
    return shared == 0;
}

bool tr_cuda_join(tr_device *d, const tr_workers *w, real *gradients,
                  const tr_range *buckets, size_t n_buckets)
{
    tr_cuda *const c = cuda_of(d);
    size_t numbers;
    tr_ranks *r;

    if (buckets == NULL)
        tr_cuda_good(c, cudaErrorMemoryAllocation, WHERE);
    if (tr_nccl_is_built && are_apart(c, w))
        return tr_nccl_join(c, w, gradients, buckets, n_buckets);
    r = new (std::nothrow) tr_ranks();
    if (r == NULL || buckets == NULL) {
        delete r;
        return tr_cuda_good(c, cudaErrorMemoryAllocation, WHERE);
    }
    r->all = w;
    r->gradients = gradients;
    r->close = c->table.close;
    c->ranks = r;
    c->table.close = close_ranks;
    c->table.sum_begin = sum_begin;
    c->table.sum_end = sum_end;
    numbers = open_sums(c, r, buckets, n_buckets);
    return tr_cuda_good(c,
                        cudaStreamCreateWithFlags(&r->stream,
                                                  cudaStreamNonBlocking),
                        WHERE)
           && tr_cuda_good(c,
                           cudaMallocHost((void **)&r->host,
                                          numbers * sizeof *r->host),
                           "pinned memory for gradients");
}
