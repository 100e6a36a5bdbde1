/*
 * cudnn.h - stands in for cuDNN's header of that name: handles.
 *
 * cudnn_frontend.h has the graphs that run with them, and cudnn.cc what all of
 * it does.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef HOSTCUDA_CUDNN_H
#define HOSTCUDA_CUDNN_H

#include "cuda_runtime_api.h"

#include <cstdint>

typedef enum {
    CUDNN_STATUS_SUCCESS = 0,
    CUDNN_STATUS_NOT_INITIALIZED = 1001,
    CUDNN_STATUS_BAD_PARAM = 2000,
    CUDNN_STATUS_EXECUTION_FAILED = 5000
} cudnnStatus_t;

typedef struct hostcuda_cudnn_handle *cudnnHandle_t;

const char *cudnnGetErrorString(cudnnStatus_t status);
cudnnStatus_t cudnnCreate(cudnnHandle_t *handle);
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle);
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream);

/* ---- What cuDNN does not have: for tests ---- */

/* Since the program began. */
struct hostcuda_cudnn_count {
    unsigned handles, graphs; /* that are alive */
    unsigned plans, runs;
    const char *refused; /* why the last call was; NULL: none was */
};

struct hostcuda_cudnn_count hostcuda_cudnn_counts(void);

/* Which numbers dropout leaves: `at` is the number's place in the scores. */
bool hostcuda_cudnn_keeps(int64_t seed, int64_t offset, float rate,
                          uint64_t at);

#endif /* HOSTCUDA_CUDNN_H */
