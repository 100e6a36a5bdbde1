/*
 * nccl.cc - exchange gradients and weights between ranks, GPU to GPU.
 *
 * Each rank updates one shard of each bucket (ranks/shards.h), as in ZeRO stage
 * 1 (Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion
 * Parameter Models", 2020):
 *
 *   sum_begin      converts a bucket's gradients to values and starts a
 *                  reduce-scatter, while kernels compute the next bucket
 *   lamb           updates the shards; sums over ranks complete the norm of the
 *                  gradient and the trust ratios
 *   send_weights   starts an all-gather for each bucket, in the order in which
 *                  forward needs them
 *   await_weights  makes forward wait for one bucket
 *
 * Values of bfloat16 are summed in bfloat16, with a rounding at each hop from
 * one GPU to the next.  All exchanges run in one stream, so they can share a
 * buffer for one bucket; the host does not wait.
 *
 * If a rank never joins an exchange, the other GPUs wait forever, and so would
 * a host that waits for its GPU.  Before each wait, the host therefore polls
 * NCCL until the exchanges are complete, and aborts if NCCL reports that
 * another rank has failed.  NCCL does not detect that a GPU has failed while
 * its process still runs; that process has to end the others (is_waited_for in
 * ops.h).
 *
 * SPDX-License-Identifier: MIT
 */
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <new>

#include "cuda/ranks.h"
#include "ranks/shards.h"

#define WHERE "sums over ranks"
#define NAP 50000 /* polling interval, in nanoseconds */

/* A bucket, its shards, and the event after its new weights. */
struct bucket {
    tr_range range;
    size_t shard; /* size of a shard, including padding */
    cudaEvent_t sent;
};

struct tr_nccl {
    ncclComm_t ranks; /* NULL before it is open and after an abort */
    uint32_t n_ranks;
    cudaStream_t stream;
    cudaEvent_t computed, exchanged;
    cudaEvent_t summed[2]; /* for this step and the previous step */
    unsigned steps;
    const real *gradients;
    bucket *buckets;
    tr_shards shards;
    void *all; /* values of one bucket, with padding */
    tr_exchange exchange;
    const tr_batch *(*stage)(tr_device *d, const tr_batch *batch);
    void (*close)(tr_device *d); /* the overridden function */
};

const bool tr_nccl_is_built = true;

/* ---- Failures ---- */

/* Aborts sums that wait for other ranks. */
static void give_up(tr_nccl *n)
{
    if (n->ranks)
        (void)ncclCommAbort(n->ranks);
    n->ranks = NULL;
}

static bool good(tr_cuda *c, ncclResult_t result)
{
    if (result != ncclSuccess && !c->failed) {
        c->failed = cudaErrorUnknown;
        snprintf(c->why, sizeof c->why, WHERE ": NCCL: %s",
                 ncclGetErrorString(result));
    }
    return !c->failed;
}

static void await(tr_cuda *c, cudaEvent_t event)
{
    const timespec nap = {0, NAP};
    cudaError_t error = cudaErrorNotReady;

    while (!c->failed) {
        ncclResult_t seen = ncclSuccess;

        error = cudaEventQuery(event);
        if (error != cudaErrorNotReady)
            break;
        if (c->nccl->ranks == NULL
            || (good(c, ncclCommGetAsyncError(c->nccl->ranks, &seen))
                && good(c, seen == ncclInProgress ? ncclSuccess : seen)))
            (void)nanosleep(&nap, NULL);
    }
    if (c->failed || !tr_cuda_good(c, error, WHERE))
        give_up(c->nccl);
}

/* The host waits here for the sums of the step before last... */
static const tr_batch *stage(tr_device *d, const tr_batch *batch)
{
    tr_nccl *const r = cuda_of(d)->nccl;

    await(cuda_of(d), r->summed[r->steps % 2]);
    return r->stage(d, batch);
}

/* ...and here for all exchanges. */
static void await_all(tr_cuda *c)
{
    tr_nccl *const r = c->nccl;

    if (!c->failed)
        tr_cuda_good(c, cudaEventRecord(r->exchanged, r->stream), WHERE);
    await(c, r->exchanged);
}

/* ---- Streams ---- */

/* Makes exchanges wait for the kernels queued so far... */
static bool after_kernels(tr_cuda *c)
{
    return tr_cuda_good(c, cudaEventRecord(c->nccl->computed, c->stream),
                        WHERE)
           && tr_cuda_good(c,
                           cudaStreamWaitEvent(c->nccl->stream,
                                               c->nccl->computed, 0),
                           WHERE);
}

/* ...and kernels for the exchanges queued so far. */
static bool before_kernels(tr_cuda *c, cudaEvent_t event)
{
    return tr_cuda_good(c, cudaEventRecord(event, c->nccl->stream), WHERE)
           && tr_cuda_good(c, cudaStreamWaitEvent(c->stream, event, 0), WHERE);
}

/* ---- Gradients ---- */

static ncclDataType_t type_of_real()
{
    return sizeof(real) == sizeof(float) ? ncclFloat : ncclDouble;
}

static ncclDataType_t type_of_values(const tr_cuda *c)
{
    return c->bf16 ? ncclBfloat16 : type_of_real();
}

/* Address of the value at an index. */
static char *value_at(const tr_cuda *c, void *values, size_t i)
{
    return (char *)values + i * c->device.value_size;
}

static void sum_begin(tr_device *d, size_t i)
{
    tr_cuda *const c = cuda_of(d);
    tr_nccl *const r = c->nccl;
    const bucket *const b = &r->buckets[i];
    const size_t padding = b->shard * r->n_ranks - b->range.count;

    if (c->failed || !after_kernels(c))
        return;
    tr_cuda_to_values(c, r->stream, b->range.count,
                      r->gradients + b->range.first, r->all);
    tr_cuda_good(c,
                 cudaMemsetAsync(value_at(c, r->all, b->range.count), 0,
                                 padding * d->value_size, r->stream),
                 WHERE);
    if (!c->failed)
        good(c, ncclReduceScatter(r->all,
                                  value_at(c, r->exchange.own,
                                           r->shards.list[i].at),
                                  b->shard, type_of_values(c), ncclSum,
                                  r->ranks, r->stream));
}

static bool sum_end(tr_device *d)
{
    tr_cuda *const c = cuda_of(d);
    tr_nccl *const r = c->nccl;

    return !c->failed && before_kernels(c, r->summed[r->steps++ % 2]);
}

/* ---- Sums for the optimiser ---- */

static void sum_any(tr_cuda *c, void *x, size_t n, ncclDataType_t type)
{
    tr_nccl *const r = c->nccl;

    if (n > 0 && !c->failed && after_kernels(c)
        && good(c, ncclAllReduce(x, x, n, type, ncclSum, r->ranks, r->stream)))
        before_kernels(c, r->exchanged);
}

static void sum(tr_cuda *c, double *x, size_t n)
{
    sum_any(c, x, n, ncclDouble);
}

static void sum_reals(tr_cuda *c, real *x, size_t n)
{
    sum_any(c, x, n, type_of_real());
}

/* ---- Weights ---- */

static void send_bucket(tr_cuda *c, size_t i, void *weights)
{
    tr_nccl *const r = c->nccl;
    const bucket *const b = &r->buckets[i];

    if (c->failed
        || !good(c, ncclAllGather(value_at(c, r->exchange.own,
                                           r->shards.list[i].at),
                                  r->all, b->shard, type_of_values(c),
                                  r->ranks, r->stream)))
        return;
    tr_cuda_good(c,
                 cudaMemcpyAsync(value_at(c, weights, b->range.first), r->all,
                                 b->range.count * c->device.value_size,
                                 cudaMemcpyDeviceToDevice, r->stream),
                 WHERE);
    tr_cuda_good(c, cudaEventRecord(b->sent, r->stream), WHERE);
}

static void send_weights(tr_cuda *c, real *weights)
{
    void *const values = (void *)tr_cuda_weight(c, weights);

    if (c->failed || !after_kernels(c))
        return;
    for (size_t i = c->nccl->shards.n; i-- > 0;)
        send_bucket(c, i, values);
}

static void await_weights(tr_device *d, size_t i)
{
    tr_cuda *const c = cuda_of(d);

    if (!c->failed)
        tr_cuda_good(c,
                     cudaStreamWaitEvent(c->stream, c->nccl->buckets[i].sent,
                                         0),
                     WHERE);
}

/* ---- Open and close ---- */

static void close_events(tr_nccl *r)
{
    for (cudaEvent_t event :
         {r->computed, r->exchanged, r->summed[0], r->summed[1]})
        if (event)
            cudaEventDestroy(event);
    for (size_t i = 0; i < r->shards.n; i++)
        if (r->buckets[i].sent)
            cudaEventDestroy(r->buckets[i].sent);
}

static void close_ranks(tr_device *d)
{
    tr_cuda *const c = cuda_of(d);
    tr_nccl *const r = c->nccl;
    void (*const close)(tr_device *) = r->close;

    await_all(c);
    c->await = NULL;
    if (c->failed)
        give_up(r);
    if (r->ranks)
        (void)ncclCommDestroy(r->ranks);
    close_events(r);
    if (r->stream) {
        cudaStreamSynchronize(r->stream);
        cudaStreamDestroy(r->stream);
    }
    cudaStreamSynchronize(c->stream);
    cudaFree(r->all);
    cudaFree(r->exchange.own);
    free(r->buckets);
    free(r->shards.list);
    delete r;
    close(d);
}

static void fill_table(tr_cuda *c)
{
    c->nccl->stage = c->table.stage;
    c->nccl->close = c->table.close;
    c->await = await_all;
    c->table.stage = stage;
    c->table.close = close_ranks;
    c->table.sum_begin = sum_begin;
    c->table.sum_end = sum_end;
    c->table.await_weights = await_weights;
}

static bool open_streams(tr_cuda *c, tr_nccl *r)
{
    const unsigned flags = cudaEventDisableTiming;

    tr_cuda_good(c, cudaStreamCreateWithFlags(&r->stream,
                 cudaStreamNonBlocking),
WHERE);
    for (cudaEvent_t *event :
         {&r->computed, &r->exchanged, &r->summed[0], &r->summed[1]})
        tr_cuda_good(c, cudaEventCreateWithFlags(event, flags), WHERE);
    return !c->failed;
}

/*
 * Divides the buckets.  In the arrays of moments, shards are as far from
 * 16-byte boundaries as in the arenas, so that kernels can use wide accesses.
 */
static bool open_shards(tr_cuda *c, tr_nccl *r, uint32_t rank,
                        const tr_range *buckets, size_t n)
{
    tr_shards *const s = &r->shards;

    r->buckets = (bucket *)calloc(n, sizeof *r->buckets);
    s->list = (tr_shard *)calloc(n, sizeof *s->list);
    if (r->buckets == NULL || s->list == NULL)
        return tr_cuda_good(c, cudaErrorMemoryAllocation, WHERE);
    for (; s->n < n && !c->failed; s->n++) {
        const tr_range own = tr_shard_of(buckets[s->n], rank, r->n_ranks);
        bucket *const b = &r->buckets[s->n];

        b->range = buckets[s->n];
        b->shard = tr_shard_size(b->range.count, r->n_ranks);
        s->list[s->n] = {own.first, own.first + own.count,
                         s->numbers + own.first % TR_SHARD_ROUND};
        s->numbers += b->shard + TR_SHARD_ROUND;
        tr_cuda_good(c, cudaEventCreateWithFlags(&b->sent,
                     cudaEventDisableTiming),
WHERE);
    }
    return !c->failed;
}

/* The padding of `own` counts in the norm of the gradient, so it is 0. */
static bool open_buffers(tr_cuda *c, tr_nccl *r)
{
    const size_t size = c->device.value_size;
    size_t most = 0;

    for (size_t i = 0; i < r->shards.n; i++)
        most = std::max(most, r->buckets[i].shard * r->n_ranks);
    r->exchange.sum = sum;
    r->exchange.sum_reals = sum_reals;
    r->exchange.send_weights = send_weights;
    return tr_cuda_good(c, cudaMalloc(&r->all, most * size), WHERE)
           && tr_cuda_good(c,
                           cudaMalloc(&r->exchange.own,
                                      r->shards.numbers * size),
                           WHERE)
           && tr_cuda_good(c,
                           cudaMemsetAsync(r->exchange.own, 0,
                                           r->shards.numbers * size,
                                           r->stream),
                           WHERE);
}

bool tr_nccl_join(tr_cuda *c, const tr_workers *w, const real *gradients,
                  const tr_range *buckets, size_t n_buckets)
{
    tr_nccl *const r = new (std::nothrow) tr_nccl();
    ncclUniqueId id = {};

    c->device.is_waited_for = true;
    if (r == NULL)
        return tr_cuda_good(c, cudaErrorMemoryAllocation, WHERE);
    c->nccl = r;
    r->n_ranks = w->ranks;
    r->gradients = gradients;
    if (open_streams(c, r) && w->rank == 0)
        good(c, ncclGetUniqueId(&id));
    fill_table(c);
    tr_workers_copy(w, &id, sizeof id);
    if (c->failed
        || !open_shards(c, r, w->rank, buckets, n_buckets)
        || !open_buffers(c, r)
        || !good(c, ncclCommInitRank(&r->ranks, (int)w->ranks, id,
                                     (int)w->rank)))
        return false;
    c->exchange = &r->exchange;
    c->device.shards = &r->shards;
    return true;
}
