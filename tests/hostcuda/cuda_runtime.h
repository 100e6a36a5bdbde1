/*
 * cuda_runtime.h - replaces CUDA's header of that name, so that a plain C++17
 * compiler builds .cu files unchanged and runs their kernels on the CPU.
 *
 *     nvcc -c kernels.cu                                   the real one
 *     g++ -std=c++17 -x c++ -I tests/hostcuda -c kernels.cu     this one
 *
 * README.md describes the emulation, its faults, and its limits.
 *
 * Sources launch kernels by cudaLaunchKernelEx (not <<<>>>), and declare
 * dynamic shared memory as
 *     extern __shared__ __align__(128) float4 dynamic_shared[];
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef HOSTCUDA_RUNTIME_H
#define HOSTCUDA_RUNTIME_H

#define HOSTCUDA 1

#include "cuda_runtime_api.h"
#include "device_functions.h"

#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>
#include <vector>

namespace hostcuda {

cudaError_t allow_shared(const void *kernel, size_t size);
cudaError_t launch(const cudaLaunchConfig_t *config, const void *kernel,
                   std::function<void()> thread,
                   std::vector<const void *> pointers);

/* Calls f for everything in an argument's bytes that may be a pointer. */
template <typename T>
inline void find_pointers(const T &argument, std::vector<const void *> *found)
{
    static_assert(std::is_trivially_copyable<T>::value,
                  "a kernel's arguments are copied byte by byte");
    const char *bytes = reinterpret_cast<const char *>(&argument);

    for (size_t i = 0; i + sizeof(void *) <= sizeof(T); i += alignof(void *)) {
        const void *word;

        std::memcpy(&word, bytes + i, sizeof word);
        found->push_back(word);
    }
}

} // namespace hostcuda

template <typename K>
inline cudaError_t cudaFuncSetAttribute(K *kernel, cudaFuncAttribute what,
                                        int value)
{
    if (what != cudaFuncAttributeMaxDynamicSharedMemorySize)
        return cudaSuccess;
    return hostcuda::allow_shared(reinterpret_cast<const void *>(kernel),
                                  (size_t)value);
}

template <typename T> inline cudaError_t cudaMalloc(T **p, size_t size)
{
    return cudaMalloc(reinterpret_cast<void **>(p), size);
}

template <typename T>
inline cudaError_t cudaMallocHost(T **p, size_t size, unsigned flags = 0)
{
    return cudaHostAlloc(reinterpret_cast<void **>(p), size, flags);
}

template <typename... P, typename... A>
inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config,
                                      void (*kernel)(P...), A &&...given)
{
    static_assert(sizeof...(P) == sizeof...(A),
                  "a kernel takes as many arguments as it declares");
    const std::tuple<P...> values(given...);
    std::vector<const void *> found;

    std::apply(
        [&](const P &...v) { (hostcuda::find_pointers(v, &found), ...); },
        values);
    return hostcuda::launch(config, reinterpret_cast<const void *>(kernel),
                            [=] { std::apply(kernel, values); }, found);
}

#endif /* HOSTCUDA_RUNTIME_H */
