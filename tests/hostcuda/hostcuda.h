/*
 * hostcuda.h - what CUDA does not have: for tests, and for host code that
 * stands in for a library's kernels.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef HOSTCUDA_H
#define HOSTCUDA_H

#include "cuda_runtime_api.h"

extern "C" {

/*
 * Lets calls fail, as $HOSTCUDA_FAIL does from the start:
 * "cudaMalloc:3" lets the third call from now fail, "cudaMalloc:3+" all from
 * there, "cudaGetDeviceCount:1=35" with that error.  Several are separated by
 * commas.  NULL ends that, and an error that stayed.  Aborts on anything else.
 */
void hostcuda_fail(const char *spec);

/* Bytes of device memory; those distinct within a launch, summed up. */
struct hostcuda_count {
    unsigned long long launches;
    unsigned long long read, read_distinct, written, written_distinct;
};

/*
 * Of kernels of that name since the last reset; all instances of a template
 * for a name without <>, all kernels for NULL.  Only where the kernels are
 * built as README.md says; else all is 0.
 */
struct hostcuda_count hostcuda_counts(const char *kernel);
void hostcuda_counts_reset(void);
/* Calls f for each kernel since the last reset. */
void hostcuda_counts_each(void (*f)(const char *kernel,
                                    const struct hostcuda_count *count,
                                    void *data),
                          void *data);

} /* extern "C" */

#include <functional>
#include <vector>

namespace hostcuda {

/*
 * Puts a host function into a stream, in which it may use device memory: so
 * is a library's call emulated.  pointers are into memory that it uses.
 * It runs as soon as ready() says so, which is asked again and again.
 */
cudaError_t enqueue(cudaStream_t stream, const char *name,
                    std::function<void()> run,
                    std::vector<const void *> pointers = {},
                    std::function<bool()> ready = {});

} // namespace hostcuda

#endif /* HOSTCUDA_H */
