/*
 * nccl.cc - NCCL by MPI.
 *
 * An exchange is two operations in its stream: the first hands the numbers to
 * MPI, the second stores the results once all ranks have contributed.  Until
 * then the host's queries report unfinished work, as for a GPU that waits for
 * another.
 *
 * SPDX-License-Identifier: MIT
 */
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <cstring>

#include "internal.h"
#include "nccl.h"

using namespace hostcuda;

struct ncclComm {
    MPI_Comm ranks;
    cudaStream_t stream; /* of the last transfer */
    bool aborted, lost; /* lost: another rank failed */
};

static ncclComm *open_comm; /* one in a process */

static bool is_to_fail(const char *call)
{
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);

    return begin(call) != cudaSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclRemoteError ? "remote process exited" : "failed";
}

/* -- communicators ------------------------------------------------------- */

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    for (char &c : id->internal)
        c = (char)(draw() | 1);
    return is_to_fail(__func__) ? ncclUnhandledCudaError : ncclSuccess;
}

/* As in NCCL, all ranks pass the first rank's id, and each has its own GPU. */
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id,
                              int rank)
{
    ncclUniqueId first = id;
    int device, its, size, is, sharing = 0;

    (void)cudaGetDevice(&device);
    *comm = open_comm = new ncclComm();
    MPI_Comm_dup(MPI_COMM_WORLD, &(*comm)->ranks);
    MPI_Comm_size((*comm)->ranks, &size);
    MPI_Comm_rank((*comm)->ranks, &is);
    MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, (*comm)->ranks);
    for (int r = 0; r < size; r++) {
        its = device;
        MPI_Bcast(&its, 1, MPI_INT, r, (*comm)->ranks);
        sharing += its == device;
    }
    if (size != ranks || is != rank || !id.internal[0]
        || std::memcmp(&id, &first, sizeof id))
        return ncclInvalidArgument;
    return sharing > 1 ? ncclInvalidUsage
           : is_to_fail(__func__) ? ncclUnhandledCudaError : ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    open_comm = nullptr;
    delete comm;
    return ncclSuccess;
}

/* Queued work continues without other ranks' numbers, so comm stays alive. */
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    open_comm = nullptr;
    comm->aborted = true;
    return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    comm->lost = comm->lost || is_to_fail(__func__);
    *error = comm->lost ? ncclRemoteError : ncclSuccess;
    return ncclSuccess;
}

/* -- exchanges ----------------------------------------------------------- */

struct transfer {
    std::vector<char> sent, got;
    MPI_Request request = MPI_REQUEST_NULL;
};

static size_t size_of(ncclDataType_t type)
{
    return type == ncclBfloat16 ? 2 : type == ncclFloat ? 4 : 8;
}

static int ranks_of(ncclComm_t comm)
{
    int n;

    MPI_Comm_size(comm->ranks, &n);
    return n;
}

/*
 * Queues an exchange of `sent` for `got` bytes: start() hands `sent` to MPI,
 * and store() writes `got` to `to` once MPI has it.
 */
static ncclResult_t queue(const char *call, const void *from, size_t sent,
                          void *to, size_t got, ncclComm_t comm,
                          cudaStream_t stream,
                          std::function<void(transfer *)> start,
                          std::function<void(transfer *)> store)
{
    const auto x = std::make_shared<transfer>();

    comm->stream = stream;
    if (enqueue(stream, call, [=] {
            x->sent.assign((const char *)from, (const char *)from + sent);
            x->got.resize(got);
            if (!comm->aborted)
                start(x.get());
        }, {from}))
        return ncclUnhandledCudaError;
    if (enqueue(stream, "exchange with other ranks", [=] {
            store(x.get());
        }, {to}, [=] {
            int done = comm->aborted;

            if (!done && !comm->lost)
                MPI_Test(&x->request, &done, MPI_STATUS_IGNORE);
            return done != 0;
        }))
        return ncclUnhandledCudaError;
    return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count,
                           ncclDataType_t type, ncclRedOp_t,
                           ncclComm_t comm, cudaStream_t stream)
{
    const MPI_Datatype mpi = type == ncclFloat ? MPI_FLOAT : MPI_DOUBLE;
    const size_t size = count * size_of(type);

    if (type == ncclBfloat16)
        return ncclInvalidArgument;
    return queue(__func__, from, size, to, size, comm, stream,
                 [=](transfer *x) {
        MPI_Iallreduce(x->sent.data(), x->got.data(), (int)count, mpi, MPI_SUM,
                       comm->ranks, &x->request);
    }, [=](transfer *x) {
        std::memcpy(to, x->got.data(), size);
    });
}

static float as_float(const uint16_t *x)
{
    const uint32_t bits = (uint32_t)*x << 16;
    float f;

    std::memcpy(&f, &bits, sizeof f);
    return f;
}

/* Rounds to the nearest, as does NCCL at each hop. */
static void add(uint16_t *to, const uint16_t *x)
{
    const float sum = as_float(to) + as_float(x);
    uint32_t bits;

    std::memcpy(&bits, &sum, sizeof bits);
    if (sum == sum)
        bits += 0x7fff + (bits >> 16 & 1);
    *to = (uint16_t)(bits >> 16);
}

static void add(float *to, const float *x) { *to += *x; }
static void add(double *to, const double *x) { *to += *x; }

/* A ring's order: a rank's shard starts at the next rank and ends there. */
template <typename T>
static void add_all(const transfer *x, size_t count, int rank, int ranks,
                    T *to)
{
    const T *const parts = (const T *)(const void *)x->got.data();

    for (size_t i = 0; i < count; i++) {
        T sum = parts[(size_t)((rank + 1) % ranks) * count + i];

        for (int r = 2; r <= ranks; r++)
            add(&sum, &parts[(size_t)((rank + r) % ranks) * count + i]);
        to[i] = sum;
    }
}

ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count,
                               ncclDataType_t type, ncclRedOp_t,
                               ncclComm_t comm, cudaStream_t stream)
{
    const int ranks = ranks_of(comm);
    const size_t size = count * size_of(type), all = size * (size_t)ranks;
    int rank;

    MPI_Comm_rank(comm->ranks, &rank);
    return queue(__func__, from, all, to, all, comm, stream,
                 [=](transfer *x) {
        MPI_Ialltoall(x->sent.data(), (int)size, MPI_BYTE, x->got.data(),
                      (int)size, MPI_BYTE, comm->ranks, &x->request);
    }, [=](transfer *x) {
        if (type == ncclBfloat16)
            add_all(x, count, rank, ranks, (uint16_t *)to);
        else if (type == ncclFloat)
            add_all(x, count, rank, ranks, (float *)to);
        else
            add_all(x, count, rank, ranks, (double *)to);
    });
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count,
                           ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream)
{
    const size_t size = count * size_of(type);
    const size_t all = size * (size_t)ranks_of(comm);

    return queue(__func__, from, size, to, all, comm, stream,
                 [=](transfer *x) {
        MPI_Iallgather(x->sent.data(), (int)size, MPI_BYTE, x->got.data(),
                       (int)size, MPI_BYTE, comm->ranks, &x->request);
    }, [=](transfer *x) {
        std::memcpy(to, x->got.data(), all);
    });
}

/*
 * Replaces MPI's own: a GPU keeps working while its host waits for other ranks,
 * which may be waiting for that GPU.
 */
int MPI_Allreduce(const void *from, void *to, int n, MPI_Datatype type,
                  MPI_Op op, MPI_Comm comm)
{
    MPI_Request request;
    int done = 0;

    PMPI_Iallreduce(from, to, n, type, op, comm, &request);
    while (!done) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (!done && open_comm && open_comm->stream)
            (void)cudaStreamQuery(open_comm->stream);
    }
    return MPI_SUCCESS;
}
