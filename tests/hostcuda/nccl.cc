/*
 * nccl.cc - NCCL by MPI.
 *
 * A sum is two operations in its stream: the first hands the numbers to MPI,
 * the second receives the sums once all ranks have contributed.  Until then the
 * host's queries report unfinished work, as for a GPU that waits for another.
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
    cudaStream_t stream; /* of the last sum */
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

/* -- sums ---------------------------------------------------------------- */

struct sum {
    std::vector<char> numbers;
    MPI_Request request = MPI_REQUEST_NULL;
};

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count,
                           ncclDataType_t type, ncclRedOp_t,
                           ncclComm_t comm, cudaStream_t stream)
{
    const MPI_Datatype mpi = type == ncclFloat ? MPI_FLOAT : MPI_DOUBLE;
    const size_t size = count * (type == ncclFloat ? 4 : 8);
    const auto s = std::make_shared<sum>();

    comm->stream = stream;
    if (enqueue(stream, __func__, [=] {
            s->numbers.assign((const char *)from, (const char *)from + size);
            if (!comm->aborted)
                MPI_Iallreduce(MPI_IN_PLACE, s->numbers.data(), (int)count,
                               mpi, MPI_SUM, comm->ranks, &s->request);
        }, {from}))
        return ncclUnhandledCudaError;
    if (enqueue(stream, "sums of other ranks", [=] {
            std::memcpy(to, s->numbers.data(), size);
        }, {to}, [=] {
            int done = comm->aborted;

            if (!done && !comm->lost)
                MPI_Test(&s->request, &done, MPI_STATUS_IGNORE);
            return done != 0;
        }))
        return ncclUnhandledCudaError;
    return ncclSuccess;
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
