/*
 * errors.cc - injected and sticky errors, and the device.
 *
 * SPDX-License-Identifier: MIT
 */
#include "internal.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace hostcuda;

std::recursive_mutex hostcuda::lock;

struct order { /* an injected error */
    std::string call;
    unsigned long number, seen;
    bool onwards;
    cudaError_t error;
};

static std::vector<order> &orders = *new std::vector<order>;
static bool was_environment_read;
static cudaError_t last, sticky;

static const struct { cudaError_t error; const char *name, *text; } ERRORS[] = {
#define E(name, text) {name, #name, text}
    E(cudaSuccess, "no error"),
    E(cudaErrorInvalidValue, "invalid argument"),
    E(cudaErrorMemoryAllocation, "out of memory"),
    E(cudaErrorInitializationError, "initialization error"),
    E(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    E(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    E(cudaErrorInsufficientDriver,
      "CUDA driver version is insufficient for CUDA runtime version"),
    E(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    E(cudaErrorInvalidDevice, "invalid device ordinal"),
    E(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
    E(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    E(cudaErrorIllegalState, "the operation cannot be performed in the "
      "present state"),
    E(cudaErrorNotReady, "device not ready"),
    E(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    E(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    E(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    E(cudaErrorAssert, "device-side assert triggered"),
    E(cudaErrorHardwareStackError, "hardware stack error"),
    E(cudaErrorIllegalInstruction, "an illegal instruction was encountered"),
    E(cudaErrorMisalignedAddress, "misaligned address"),
    E(cudaErrorInvalidAddressSpace,
      "operation not supported on global/shared address space"),
    E(cudaErrorInvalidPc, "invalid program counter"),
    E(cudaErrorLaunchFailure, "unspecified launch failure"),
    E(cudaErrorNotSupported, "operation not supported"),
    E(cudaErrorStreamCaptureUnsupported,
      "operation not permitted when stream is capturing"),
    E(cudaErrorStreamCaptureInvalidated,
      "operation failed due to a previous error during capture"),
    E(cudaErrorStreamCaptureMerge,
      "operation would result in a merge of separate capture sequences"),
    E(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same "
      "stream as it began"),
    E(cudaErrorStreamCaptureUnjoined,
      "capturing stream has unjoined work"),
    E(cudaErrorStreamCaptureIsolation,
      "dependency created on uncaptured work in another stream"),
    E(cudaErrorStreamCaptureImplicit, "operation would make the legacy stream "
      "depend on a capturing blocking stream"),
    E(cudaErrorCapturedEvent, "operation not permitted on an event last "
      "recorded in a capturing stream"),
    E(cudaErrorUnknown, "unknown error"),
#undef E
};

/* -- injected errors ----------------------------------------------------- */

static cudaError_t usual_error(const std::string &call)
{
    if (call == "cudaGetDeviceCount")
        return cudaErrorNoDevice;
    if (call == "cudaLaunchKernelEx" || call == "kernel")
        return cudaErrorLaunchFailure;
    return cudaErrorMemoryAllocation;
}

/* CALL:NUMBER[+][=ERROR], up to a comma or the end. */
static const char *read_order(const char *spec, order *o)
{
    const size_t length = std::strcspn(spec, ":,");
    char *end;

    o->call.assign(spec, length);
    spec += length;
    if (!length || *spec != ':' || spec[1] < '1' || spec[1] > '9')
        return nullptr;
    o->number = std::strtoul(spec + 1, &end, 10);
    o->seen = 0;
    o->onwards = *end == '+';
    end += o->onwards;
    o->error = usual_error(o->call);
    if (*end == '=' && end[1] >= '1' && end[1] <= '9')
        o->error = (cudaError_t)std::strtoul(end + 1, &end, 10);
    return *end == ',' ? end + 1 : *end ? nullptr : end;
}

static void read_orders(const char *spec)
{
    const char *const whole = spec;

    orders.clear();
    while (spec && *spec) {
        order o;

        spec = read_order(spec, &o);
        if (!spec)
            fault("HOSTCUDA_FAIL", 0, "no list of CALL:NUMBER[+][=ERROR]: %s",
                  whole);
        orders.push_back(o);
    }
}

extern "C" void hostcuda_fail(const char *spec)
{
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);

    was_environment_read = true;
    if (!spec)
        last = sticky = cudaSuccess;
    read_orders(spec);
}

cudaError_t hostcuda::failed(cudaError_t error)
{
    if (error)
        last = error;
    return error;
}

void hostcuda::stay_failed(cudaError_t error) { sticky = error; }

cudaError_t hostcuda::stayed() { return sticky; }

cudaError_t hostcuda::begin(const char *call)
{
    cudaError_t error = cudaSuccess;

    if (!was_environment_read) {
        was_environment_read = true;
        read_orders(std::getenv("HOSTCUDA_FAIL"));
    }
    for (order &o : orders)
        if (o.call == call
            && (++o.seen == o.number || (o.onwards && o.seen > o.number)))
            error = o.error;
    return failed(sticky ? sticky : error);
}

/* -- CUDA's error calls -------------------------------------------------- */

cudaError_t cudaGetLastError()
{
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);
    const cudaError_t error = sticky ? sticky : last;

    last = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError()
{
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);

    return sticky ? sticky : last;
}

const char *cudaGetErrorName(cudaError_t error)
{
    for (const auto &e : ERRORS)
        if (e.error == error)
            return e.name;
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    for (const auto &e : ERRORS)
        if (e.error == error)
            return e.text;
    return "unrecognized error code";
}

/* -- devices ------------------------------------------------------------- */

/* $HOSTCUDA_DEVICES, such as 9.0,7.5: compute capabilities times 10. */
static const std::vector<int> &devices()
{
    static const auto &all = *new std::vector<int>([] {
        const char *said = std::getenv("HOSTCUDA_DEVICES");
        std::vector<int> read;

        for (said = said ? said : "9.0"; said; said = std::strchr(said, ',')) {
            said += *said == ',';
            read.push_back((int)(10 * std::strtod(said, nullptr) + 0.5));
        }
        return read;
    }());

    return all;
}

static bool is_device(int device)
{
    return device >= 0 && (size_t)device < devices().size();
}

/* Not 0 at first: see README.md. */
static thread_local int current_plus_one = 1;

/* $HOSTCUDA_MEMORY bytes, or 4 GiB. */
size_t hostcuda::memory_limit()
{
    static const char *const said = std::getenv("HOSTCUDA_MEMORY");

    return said ? std::strtoull(said, nullptr, 10) : (size_t)4 << 30;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 0;
    HOSTCUDA_CALL;
    *count = (int)devices().size();
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    HOSTCUDA_CALL;
    if (!is_device(device))
        return failed(cudaErrorInvalidDevice);
    current_plus_one = device + 1;
    return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned flags)
{
    HOSTCUDA_CALL;
    return flags & ~(unsigned)cudaDeviceScheduleBlockingSync
               ? failed(cudaErrorInvalidValue) : cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    HOSTCUDA_CALL;
    *device = current_plus_one - 1;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device)
{
    HOSTCUDA_CALL;
    if (!is_device(device))
        return failed(cudaErrorInvalidDevice);
    *p = {};
    std::snprintf(p->name, sizeof p->name, "hostcuda");
    std::memcpy(p->uuid.bytes, &device, sizeof device);
    p->totalGlobalMem = memory_limit();
    p->sharedMemPerBlock = 48 << 10;
    p->sharedMemPerBlockOptin = MAX_SHARED;
    p->sharedMemPerMultiprocessor = MAX_SHARED + 1024;
    p->major = devices()[(size_t)device] / 10;
    p->minor = devices()[(size_t)device] % 10;
    p->multiProcessorCount = 4;
    p->warpSize = 32;
    p->maxThreadsPerBlock = MAX_THREADS;
    p->maxThreadsPerMultiProcessor = 2048;
    p->regsPerBlock = 65536;
    p->l2CacheSize = 50 << 20;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    HOSTCUDA_CALL;
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    HOSTCUDA_CALL;
    *version = CUDART_VERSION;
    return cudaSuccess;
}
