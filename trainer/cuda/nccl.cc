/*
 * nccl.cc - sum gradients over ranks, GPU to GPU.
 *
 * NCCL sums each array in a separate stream while kernels compute the next
 * array; the host does not wait.
 *
 * If a rank never joins a sum, the other GPUs wait forever, and so would a host
 * that waits for its GPU.  Before each wait, the host therefore polls NCCL
 * until the sums are complete, and aborts if NCCL reports that another rank has
 * failed.  NCCL does not detect that a GPU has failed while its process still
 * runs; that process has to end the others (is_waited_for in ops.h).
 *
 * SPDX-License-Identifier: MIT
 */
#include <nccl.h>
#include <stdio.h>
#include <time.h>

#include <new>

#include "cuda/ranks.h"

#define WHERE "sums over ranks"
#define NAP 50000 /* polling interval, in nanoseconds */

struct tr_nccl {
    ncclComm_t ranks; /* NULL after an abort */
    cudaStream_t stream;
    cudaEvent_t computed;
    cudaEvent_t summed[2]; /* for this step and the previous step */
    unsigned steps;
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

static void await(tr_cuda *c, cudaEvent_t summed)
{
    const timespec nap = {0, NAP};
    cudaError_t error = cudaErrorNotReady;

    while (!c->failed) {
        ncclResult_t seen = ncclSuccess;

        error = cudaEventQuery(summed);
        if (error != cudaErrorNotReady)
            break;
        if (good(c, ncclCommGetAsyncError(c->nccl->ranks, &seen))
            && good(c, seen == ncclInProgress ? ncclSuccess : seen))
            (void)nanosleep(&nap, NULL);
    }
    if (c->failed || !tr_cuda_good(c, error, WHERE))
        give_up(c->nccl);
}

/* ---- Sums ---- */

static void sum_begin(tr_device *d, real *x, size_t n)
{
    tr_cuda *const c = cuda_of(d);
    tr_nccl *const r = c->nccl;

    if (c->failed)
        return;
    tr_cuda_good(c, cudaEventRecord(r->computed, c->stream), WHERE);
    tr_cuda_good(c, cudaStreamWaitEvent(r->stream, r->computed, 0), WHERE);
    good(c, ncclAllReduce(x, x, n,
                          sizeof *x == sizeof(float) ? ncclFloat : ncclDouble,
                          ncclSum, r->ranks, r->stream));
}

static bool sum_end(tr_device *d)
{
    tr_cuda *const c = cuda_of(d);
    tr_nccl *const r = c->nccl;
    const cudaEvent_t summed = r->summed[r->steps++ % 2];

    if (c->failed)
        return false;
    tr_cuda_good(c, cudaEventRecord(summed, r->stream), WHERE);
    return tr_cuda_good(c, cudaStreamWaitEvent(c->stream, summed, 0), WHERE);
}

/* The host waits here for the sums of the step before last... */
static const tr_batch *stage(tr_device *d, const tr_batch *batch)
{
    tr_nccl *const r = cuda_of(d)->nccl;

    await(cuda_of(d), r->summed[r->steps % 2]);
    return r->stage(d, batch);
}

/* ...and here for the sums of the last step. */
static void await_all(tr_cuda *c)
{
    await(c, c->nccl->summed[(c->nccl->steps + 1) % 2]);
}

/* ---- Open and close ---- */

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
    for (cudaEvent_t event : {r->computed, r->summed[0], r->summed[1]})
        if (event)
            cudaEventDestroy(event);
    if (r->stream) {
        cudaStreamSynchronize(r->stream);
        cudaStreamDestroy(r->stream);
    }
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
}

static bool open_streams(tr_cuda *c, tr_nccl *r)
{
    const unsigned flags = cudaEventDisableTiming;

    tr_cuda_good(c, cudaStreamCreateWithFlags(&r->stream,
                 cudaStreamNonBlocking),
WHERE);
    for (cudaEvent_t *event : {&r->computed, &r->summed[0], &r->summed[1]})
        tr_cuda_good(c, cudaEventCreateWithFlags(event, flags), WHERE);
    return !c->failed;
}

bool tr_nccl_join(tr_cuda *c, const tr_workers *w)
{
    tr_nccl *const r = new (std::nothrow) tr_nccl();
    ncclUniqueId id = {};

    c->device.is_waited_for = true;
    if (r == NULL)
        return tr_cuda_good(c, cudaErrorMemoryAllocation, WHERE);
    c->nccl = r;
    if (open_streams(c, r) && w->rank == 0)
        good(c, ncclGetUniqueId(&id));
    fill_table(c);
    tr_workers_copy(w, &id, sizeof id);
    return good(c, c->failed ? ncclSuccess
                             : ncclCommInitRank(&r->ranks, (int)w->ranks, id,
                                                (int)w->rank));
}
