/*
 * cuda_pipeline_primitives.h - asynchronous copies from global to shared
 * memory.
 *
 * Data arrives only when it is waited for; until then the target is all ones,
 * that is NaN.  A thread that ends without having waited is a fault.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef HOSTCUDA_CUDA_PIPELINE_PRIMITIVES_H
#define HOSTCUDA_CUDA_PIPELINE_PRIMITIVES_H

#include "device_functions.h"

namespace hostcuda {

struct async_copy {
    void *to;
    const void *from;
    size_t size; /* 4, 8 or 16 bytes */
    size_t zeros; /* this many of them at the end */
    uint64_t batch;
    const char *file;
    int line;
};

void copy_later(const async_copy &copy);
void commit_copies();
/* The next copy that this thread waits for; NULL after the last one. */
const async_copy *copy_due(size_t prior);

/* In accesses as wide as on a GPU, for counters and sanitizers. */
inline void copy_words(void *to, const void *from, size_t size)
{
    if (size == 16)
        *(float4 *)to = *(const float4 *)from;
    else if (size == 8)
        *(float2 *)to = *(const float2 *)from;
    else
        *(float *)to = *(const float *)from;
}

} // namespace hostcuda

static inline void __pipeline_memcpy_async(void *to, const void *from,
                                           size_t size, size_t zeros = 0,
                                           HOSTCUDA_AT)
{
    uint32_t ones[4];

    if (size != 4 && size != 8 && size != 16)
        hostcuda::fault(file, line, "a copy of other than 4, 8 or 16 bytes");
    if (((uintptr_t)to | (uintptr_t)from) % size)
        hostcuda::fault(file, line, "a copy that is not aligned to its size");
    if (zeros > size)
        hostcuda::fault(file, line, "a copy with more zeros than bytes");
    std::memset(ones, 0xff, sizeof ones);
    hostcuda::copy_words(to, ones, size);
    hostcuda::copy_later({to, from, size, zeros, 0, file, line});
}

static inline void __pipeline_commit() { hostcuda::commit_copies(); }

static inline void __pipeline_wait_prior(size_t prior)
{
    while (const hostcuda::async_copy *c = hostcuda::copy_due(prior)) {
        uint32_t zeros[4] = {};

        if (c->zeros == 0) {
            hostcuda::copy_words(c->to, c->from, c->size);
            continue;
        }
        std::memcpy(zeros, c->from, c->size - c->zeros);
        hostcuda::copy_words(c->to, zeros, c->size);
    }
}

#endif /* HOSTCUDA_CUDA_PIPELINE_PRIMITIVES_H */
