/*
 * occupancy.c - results of the toolkit's occupancy calculator for many kernels;
 * occupancy.bats builds it and compares.
 *
 *     occupancy        prints lines of ARCH THREADS REGISTERS SHARED BLOCKS
 *
 * SPDX-License-Identifier: MIT
 */
#include <cuda_occupancy.h>
#include <limits.h>
#include <stdio.h>

static const int ARCHS[] = {80, 90, 100};
static const int THREADS[] = {1, 32, 96, 128, 160, 256, 384, 512, 768, 1024};
static const int REGISTERS[] = {16, 24, 32, 40, 48, 63, 64, 72,
                                96, 128, 168, 200, 255};
static const int SHARED[] = {0,     1,     1024,   16384,  49152, 66560,
                             82944, 98304, 165888, 166912, 166913, 232448,
                             232449};
#define COUNT(a) (sizeof(a) / sizeof *(a))

static int blocks(int arch, int threads, int registers, int shared)
{
    const size_t size = arch == 80 ? 164 * 1024 : 228 * 1024;
    cudaOccDeviceProp device = {
        .computeMajor = arch / 10, .maxThreadsPerBlock = 1024,
        .maxThreadsPerMultiprocessor = 2048, .regsPerBlock = 65536,
        .regsPerMultiprocessor = 65536, .warpSize = 32,
        .sharedMemPerBlock = 48 * 1024, .sharedMemPerMultiprocessor = size,
        .numSms = 108, .sharedMemPerBlockOptin = size - 1024,
        .reservedSharedMemPerBlock = 1024};
    cudaOccFuncAttributes kernel = {
        .maxThreadsPerBlock = INT_MAX, .numRegs = registers,
        .shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
        .maxDynamicSharedSizeBytes = (size_t)shared};
    cudaOccDeviceState state = {
        .carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED};
    cudaOccResult result;

    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel,
                                                &state, threads,
                                                (size_t)shared))
        return -1;
    return result.activeBlocksPerMultiprocessor;
}

int main(void)
{
    for (size_t a = 0; a < COUNT(ARCHS); a++)
        for (size_t t = 0; t < COUNT(THREADS); t++)
            for (size_t r = 0; r < COUNT(REGISTERS); r++)
                for (size_t s = 0; s < COUNT(SHARED); s++)
                    printf("%d %d %d %d %d\n", ARCHS[a], THREADS[t],
                           REGISTERS[r], SHARED[s],
                           blocks(ARCHS[a], THREADS[t], REGISTERS[r],
                                  SHARED[s]));
    return 0;
}
