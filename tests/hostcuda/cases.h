/*
 * cases.h - shared by the tests of hostcuda.
 *
 * A case is a function that runs in a process of its own.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef HOSTCUDA_CASES_H
#define HOSTCUDA_CASES_H

#include <cuda_runtime.h>

#include "hostcuda.h"

#include <cstdio>
#include <cstdlib>

extern __shared__ __align__(128) float4 dynamic_shared[];

/* Builds that run a case. */
enum { PLAIN = 1, ASAN = 2, TSAN = 4, COUNTERS = 8, ALL = 15 };

struct test_case {
    const char *name;
    void (*run)();
    const char *fault; /* part of the expected message; null: it succeeds */
    unsigned builds;
    const char *environment; /* NAME=VALUE, or null */
};

extern const test_case host_cases[], device_cases[], graph_cases[];

#define CHECK(condition)                                                      \
    do                                                                        \
        if (!(condition)) {                                                   \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,           \
                         #condition);                                         \
            std::exit(1);                                                     \
        }                                                                     \
    while (0)

#define OK(call) CHECK((call) == cudaSuccess)

template <typename... P, typename... A>
inline cudaError_t launch(dim3 grid, dim3 block, size_t shared,
                          cudaStream_t stream, void (*kernel)(P...),
                          A... arguments)
{
    cudaLaunchConfig_t c = {};

    c.gridDim = grid;
    c.blockDim = block;
    c.dynamicSmemBytes = shared;
    c.stream = stream;
    return cudaLaunchKernelEx(&c, kernel, arguments...);
}

template <typename T> inline T *device_array(size_t n)
{
    T *p;

    OK(cudaMalloc(&p, n * sizeof(T)));
    return p;
}

template <typename T> inline T *device_array(size_t n, const T *values)
{
    T *p = device_array<T>(n);

    OK(cudaMemcpy(p, values, n * sizeof(T), cudaMemcpyHostToDevice));
    OK(cudaDeviceSynchronize());
    return p;
}

template <typename T> inline T *pinned_array(size_t n)
{
    T *p;

    OK(cudaMallocHost(&p, n * sizeof(T)));
    return p;
}

/* Reads after all queued work. */
template <typename T> inline T value_at(const T *p)
{
    T value;

    OK(cudaDeviceSynchronize());
    OK(cudaMemcpy(&value, p, sizeof value, cudaMemcpyDeviceToHost));
    return value;
}

#endif /* HOSTCUDA_CASES_H */
