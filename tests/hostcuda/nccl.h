/*
 * nccl.h - replaces NCCL's header of that name: a communicator, sums and
 * gathers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef HOSTCUDA_NCCL_H
#define HOSTCUDA_NCCL_H

#include <cuda_runtime.h>

#define NCCL_VERSION_CODE 22809

typedef struct ncclComm *ncclComm_t;
typedef struct { char internal[128]; } ncclUniqueId;
typedef enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7
} ncclResult_t;
typedef enum { ncclSum = 0 } ncclRedOp_t;
typedef enum {
    ncclFloat = 7,
    ncclDouble = 8,
    ncclBfloat16 = 9
} ncclDataType_t;

ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id,
                              int rank);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error);
ncclResult_t ncclAllReduce(const void *from, void *to, size_t count,
                           ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count,
                               ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllGather(const void *from, void *to, size_t count,
                           ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream);
const char *ncclGetErrorString(ncclResult_t result);

#endif /* HOSTCUDA_NCCL_H */
