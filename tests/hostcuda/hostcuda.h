/*
 * hostcuda.h - extensions of CUDA: for tests, and for host code that emulates a
 * library's kernels.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef HOSTCUDA_H
#define HOSTCUDA_H

#include "cuda_runtime_api.h"

extern "C" {

/*
 * Injects failures, as $HOSTCUDA_FAIL does from the start: "cudaMalloc:3" makes
 * the third call from now fail, "cudaMalloc:3+" all from there,
 * "cudaGetDeviceCount:1=35" with that error.  Several are separated by commas.
 * NULL ends them, and clears a sticky error.  Aborts on anything else.
 */
void hostcuda_fail(const char *spec);

/* Bytes of device memory; those distinct within a launch, added up. */
struct hostcuda_count {
    unsigned long long launches;
    unsigned long long read, read_distinct, written, written_distinct;
};

/*
 * Counts for kernels of that name since the last reset: for all instances of a
 * template if the name has no <>, for all kernels if it is NULL.  All are 0
 * unless the kernels are built as described in README.md.
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
 * Queues a host function in a stream, where it may use device memory, to
 * emulate a library's call.  `pointers` are into the memory that it uses.  It
 * runs once ready() returns true; ready() may be called any number of times.
 */
cudaError_t enqueue(cudaStream_t stream, const char *name,
                    std::function<void()> run,
                    std::vector<const void *> pointers = {},
                    std::function<bool()> ready = {});

} // namespace hostcuda

#endif /* HOSTCUDA_H */
