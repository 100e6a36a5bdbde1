/*
 * plan-cudnn.h - a GPU that is not here, for cuDNN to plan for.
 *
 * A description in JSON stands for it (cuDNN 9.8 on), so that no handle is
 * needed.  cuDNN wants a libcuda.so.1 even so: the toolkit's stub will do, on
 * LD_LIBRARY_PATH under that name.  Heuristics choose engines and see whether
 * they can do it; then plans are compiled, and fail only when their code is to
 * be loaded, with error 34 of the stub.  That is success here.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_CUDA_PLAN_CUDNN_H
#define TESTS_CUDA_PLAN_CUDNN_H

#include <stdio.h>
#include <string.h>

/* A batch of BERT-base. */
enum { SPANS = 64, HEADS = 12, LONGEST = 512, WIDTH = 64 };

enum { DEVICE_TEXT = 1000 };

/* Of A100, H100 and B200, by architecture. */
static inline void plan_device(char text[DEVICE_TEXT], int arch)
{
    snprintf(text, DEVICE_TEXT,
             "{\"cudaDeviceId\":0,\"deviceVer\":%d,\"driverVer\":13000,"
             "\"deviceName\":\"none\",\"maxGridSize\":[2147483647,65535,65535],"
             "\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,"
             "\"multiProcessorCount\":%d,\"warpSize\":32,"
             "\"maxSharedMemoryPerBlock\":49152,"
             "\"maxSharedMemoryPerBlockOptin\":%d,"
             "\"reservedSharedMemoryPerBlock\":1024,"
             "\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,"
             "\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,"
             "\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,"
             "\"totalGlobalMem\":85000000000,\"smClockRateKHz\":1980000,"
             "\"memClockRateKHz\":2619000,\"l2CacheSize\":52428800}",
             10 * arch, arch < 90 ? 108 : arch < 100 ? 132 : 148,
             arch < 90 ? 166912 : 232448);
}

/* Whether a plan failed only as its code was loaded. */
static inline int plan_compiled(const char *why)
{
    return strstr(why, "cuLibraryLoadData returned error  (34)")
           || strstr(why, "EXECUTION_FAILED_CUDA_DRIVER");
}

#endif /* TESTS_CUDA_PLAN_CUDNN_H */
