/*
 * cudnn.h - replaces cuDNN's header of that name: handles.
 *
 * cudnn_frontend.h declares the graphs that run with them; cudnn.cc implements
 * both.
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

/* ---- Not in cuDNN: for tests ---- */

/* Since the program began. */
struct hostcuda_cudnn_count {
    unsigned handles, graphs; /* not destroyed */
    unsigned plans, runs;
    const char *refused; /* reason of the last refused call, or NULL */
};

struct hostcuda_cudnn_count hostcuda_cudnn_counts(void);

/* True if dropout keeps a number: `at` is its index in the scores. */
bool hostcuda_cudnn_keeps(int64_t seed, int64_t offset, float rate,
                          uint64_t at);

#endif /* HOSTCUDA_CUDNN_H */
