/*
 * host-cases.cc - memory, streams, events and errors on the host.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cases.h"

#include <cstring>
#include <string>

/* -- memory -------------------------------------------------------------- */

static void host_reads_device()
{
    std::printf("%d\n", *(volatile int *)device_array<int>(1));
}

static void host_function_reads_device()
{
    OK(cudaLaunchHostFunc(
        0, [](void *p) { std::printf("%d\n", *(volatile int *)p); },
        device_array<int>(1)));
    OK(cudaDeviceSynchronize());
}

static void stand_in_reads_device()
{
    int *p = device_array<int>(1), seen = 0;

    OK(cudaMemset(p, 1, sizeof *p));
    OK(hostcuda::enqueue(0, "a library", [&] { seen = *p; }, {p}));
    OK(cudaDeviceSynchronize());
    CHECK(seen == 0x01010101);
}

static void stand_in_waits()
{
    cudaStream_t s;
    int *p = device_array<int>(1), asked = 0, seen = 0;

    OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    OK(hostcuda::enqueue(s, "a library", [&] { *p = 1; }, {p},
                         [&] { return ++asked > 20; }));
    OK(hostcuda::enqueue(s, "a library", [&] { seen = *p; }, {p}));
    CHECK(cudaStreamQuery(s) == cudaErrorNotReady);
    CHECK(asked > 0 && asked < 20 && seen == 0);
    OK(cudaStreamSynchronize(s));
    CHECK(asked == 21 && seen == 1);
}

static void copy_host_as_device()
{
    int x = 0, y = 0;

    cudaMemcpy(&x, &y, sizeof x, cudaMemcpyHostToDevice);
}

static void copy_device_as_host()
{
    int *p = device_array<int>(1);

    cudaMemcpy(p, p, sizeof *p, cudaMemcpyHostToDevice);
}

static void copy_wrong_way()
{
    int x = 0;

    cudaMemcpyAsync(device_array<int>(1), &x, sizeof x, cudaMemcpyDeviceToHost);
}

static void copy_past_end()
{
    int x[3] = {};

    cudaMemcpy(device_array<int>(2), x, sizeof x, cudaMemcpyHostToDevice);
}

static void copy_past_pinned()
{
    int *x = pinned_array<int>(2);

    cudaMemcpy(x, device_array<int>(3), 12, cudaMemcpyDeviceToHost);
}

static void set_host()
{
    int x;

    cudaMemset(&x, 0, sizeof x);
}

static void copy_freed()
{
    int x = 0, *p = device_array<int>(1);

    OK(cudaFree(p));
    cudaMemcpy(p, &x, sizeof x, cudaMemcpyHostToDevice);
}

static __global__ void set_to(int *p, int value) { *p = value; }

static void free_in_use()
{
    int *p = device_array<int>(10);

    OK(launch(1, 1, 0, 0, set_to, p + 5, 1));
    cudaFree(p);
}

struct two_pointers { const int *from; int *to; };

static __global__ void copy_one(two_pointers p) { *p.to = *p.from; }

static void free_in_use_by_struct()
{
    int *p = device_array<int>(1), *q = device_array<int>(1);

    OK(launch(1, 1, 0, 0, copy_one, two_pointers{p, q}));
    cudaFree(q);
}

static void free_pinned_in_use()
{
    int *p = pinned_array<int>(1);

    OK(cudaMemcpyAsync(device_array<int>(1), p, sizeof *p,
                       cudaMemcpyHostToDevice));
    cudaFreeHost(p);
}

static void free_twice()
{
    int *p = device_array<int>(1);

    OK(cudaFree(p));
    cudaFree(p);
}

static void free_of_host() { cudaFree(pinned_array<int>(1)); }

static void free_host_of_device() { cudaFreeHost(device_array<int>(1)); }

static void frees()
{
    int *p = device_array<int>(10), *q = pinned_array<int>(10);

    OK(launch(1, 1, 0, 0, set_to, p, 1));
    OK(cudaMemcpyAsync(q, p, 40, cudaMemcpyDeviceToHost));
    OK(cudaDeviceSynchronize());
    CHECK(q[0] == 1 && q[1] == -1);
    OK(cudaFree(p));
    OK(cudaFreeHost(q));
    OK(cudaFree(nullptr));
    OK(cudaFreeHost(nullptr));
}

static void memory_limit()
{
    size_t unused, total;
    void *p, *q;

    OK(cudaMalloc(&p, 600));
    OK(cudaMemGetInfo(&unused, &total));
    CHECK(total == 1000 && unused == 400);
    CHECK(cudaMalloc(&q, 401) == cudaErrorMemoryAllocation && !q);
    CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
    CHECK(cudaMalloc(&q, (size_t)-1) == cudaErrorMemoryAllocation);
    OK(cudaMalloc(&q, 400));
    OK(cudaFree(p));
    OK(cudaMalloc(&p, 600));
}

/* -- asynchronous copies ------------------------------------------------- */

static void pinned_is_read_late()
{
    int *p = pinned_array<int>(1), *d = device_array<int>(1);

    *p = 1;
    OK(cudaMemcpyAsync(d, p, sizeof *p, cudaMemcpyHostToDevice));
    *p = 2; /* too early */
    CHECK(value_at(d) == 2);
}

static void pageable_is_read_at_once()
{
    int x = 1, *d = device_array<int>(1);

    OK(cudaMemcpyAsync(d, &x, sizeof x, cudaMemcpyHostToDevice));
    x = 2;
    OK(cudaMemcpyAsync(&x, d, sizeof x, cudaMemcpyDeviceToHost));
    CHECK(x == 1);
}

static void pinned_is_written_late()
{
    int *p = pinned_array<int>(1), *d = device_array<int>(1);
    cudaEvent_t e;

    *p = 5;
    OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    OK(cudaMemset(d, 0, sizeof *d));
    OK(cudaMemcpyAsync(p, d, sizeof *p, cudaMemcpyDeviceToHost));
    OK(cudaEventRecord(e));
    CHECK(*p == 5);
    OK(cudaEventSynchronize(e));
    CHECK(*p == 0);
}

/* -- streams and events -------------------------------------------------- */

/* 60 times a writer in one stream and a reader in another, synchronised. */
static int race_streams(bool wait)
{
    int *d = device_array<int>(2), right = 0;
    cudaStream_t maker, reader;
    cudaEvent_t made, seen;

    OK(cudaStreamCreateWithFlags(&maker, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&reader, cudaStreamNonBlocking));
    OK(cudaEventCreateWithFlags(&made, cudaEventDisableTiming));
    OK(cudaEventCreateWithFlags(&seen, cudaEventDisableTiming));
    for (int i = 0; i < 60; i++) {
        if (wait)
            OK(cudaStreamWaitEvent(maker, seen));
        OK(launch(1, 1, 0, maker, set_to, d, i));
        OK(cudaEventRecord(made, maker));
        if (wait)
            OK(cudaStreamWaitEvent(reader, made));
        OK(launch(1, 1, 0, reader, copy_one, two_pointers{d, d + 1}));
        OK(cudaEventRecord(seen, reader));
        if (i % 3 == 0)
            OK(cudaEventSynchronize(seen));
        else
            OK(cudaStreamSynchronize(reader));
        right += value_at(d + 1) == i;
    }
    OK(cudaStreamDestroy(maker));
    OK(cudaStreamDestroy(reader));
    OK(cudaEventDestroy(made));
    OK(cudaEventDestroy(seen));
    return right;
}

static void event_missing() { CHECK(race_streams(false) < 60); }

static void event_waited_for() { CHECK(race_streams(true) == 60); }

/* Nothing orders stream 0, which cudaMemset uses, and another. */
static void stream_zero_is_alone()
{
    int *d = device_array<int>(1), wrong = 0;
    cudaStream_t s;

    OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    for (int i = 0; i < 60; i++) {
        OK(cudaMemset(d, 0, sizeof *d));
        OK(launch(1, 1, 0, s, set_to, d, 1));
        wrong += value_at(d) == 0;
    }
    CHECK(wrong > 0 && wrong < 60);
}

static void polling_ends()
{
    int *d = device_array<int>(1), polls = 0;
    cudaEvent_t e;

    OK(cudaEventCreate(&e));
    OK(cudaEventQuery(e)); /* never recorded */
    for (int i = 0; i < 5; i++)
        OK(launch(1, 1, 0, 0, set_to, d, i));
    OK(cudaEventRecord(e));
    while (cudaEventQuery(e) == cudaErrorNotReady)
        polls++;
    CHECK(polls > 0 && cudaGetLastError() == cudaSuccess);
    OK(cudaStreamQuery(0));
    CHECK(value_at(d) == 4);
}

static void event_times()
{
    cudaEvent_t from, to, without;
    float ms = -1;

    OK(cudaEventCreate(&from));
    OK(cudaEventCreate(&to));
    OK(cudaEventCreateWithFlags(&without, cudaEventDisableTiming));
    CHECK(cudaEventElapsedTime(&ms, from, to)
          == cudaErrorInvalidResourceHandle);
    OK(cudaEventRecord(from));
    OK(cudaEventRecord(to));
    OK(cudaEventRecord(without));
    CHECK(cudaEventElapsedTime(&ms, from, to) == cudaErrorNotReady);
    OK(cudaDeviceSynchronize());
    OK(cudaEventElapsedTime(&ms, from, to));
    CHECK(ms >= 0);
    CHECK(cudaEventElapsedTime(&ms, from, without)
          == cudaErrorInvalidResourceHandle);
}

/* Queued work is still done after the handles are destroyed. */
static void destroyed_early()
{
    int *d = device_array<int>(1);
    cudaStream_t s;
    cudaEvent_t e;

    OK(cudaStreamCreate(&s));
    OK(cudaEventCreate(&e));
    OK(launch(1, 1, 0, s, set_to, d, 3));
    OK(cudaEventRecord(e, s));
    OK(cudaStreamWaitEvent(0, e));
    OK(cudaStreamDestroy(s));
    OK(cudaEventDestroy(e));
    CHECK(value_at(d) == 3);
}

static void stream_destroyed()
{
    cudaStream_t s;

    OK(cudaStreamCreate(&s));
    OK(cudaStreamDestroy(s));
    cudaStreamSynchronize(s);
}

static void event_destroyed()
{
    cudaEvent_t e;

    OK(cudaEventCreate(&e));
    OK(cudaEventDestroy(e));
    cudaEventRecord(e);
}

/* -- launches that every GPU refuses ------------------------------------- */

static __global__ void nothing() {}

static void grid_empty() { launch(0, 1, 0, 0, nothing); }
static void grid_too_high() { launch(dim3(1, 65536), 1, 0, 0, nothing); }
static void block_too_big() { launch(1, dim3(32, 33), 0, 0, nothing); }
static void shared_not_asked() { launch(1, 1, (48 << 10) + 1, 0, nothing); }
static void shared_too_much()
{
    cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         228 << 10);
}

static void launches()
{
    OK(cudaFuncSetAttribute(nothing,
                            cudaFuncAttributeMaxDynamicSharedMemorySize,
                            227 << 10));
    OK(launch(dim3(2, 3, 4), dim3(8, 4, 32), 227 << 10, 0, nothing));
    OK(cudaDeviceSynchronize());
    CHECK(hostcuda_counts("nothing").launches == 1);
}

/* -- errors -------------------------------------------------------------- */

static void errors_by_order()
{
    void *p;
    int n;

    OK(cudaMalloc(&p, 1));
    OK(cudaMalloc(&p, 1));
    CHECK(cudaMalloc(&p, 1) == cudaErrorMemoryAllocation);
    CHECK(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
    CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
    CHECK(cudaGetLastError() == cudaSuccess);
    OK(cudaMalloc(&p, 1));
    CHECK(cudaGetDeviceCount(&n) == cudaErrorNoDevice && n == 0);
    CHECK(cudaGetDeviceCount(&n) == cudaErrorNoDevice);
    hostcuda_fail("cudaGetDeviceCount:1=35,cudaMallocHost:2");
    CHECK(cudaGetDeviceCount(&n) == cudaErrorInsufficientDriver);
    OK(cudaGetDeviceCount(&n));
    CHECK(n == 1);
    OK(cudaMallocHost(&p, 1));
    CHECK(cudaMallocHost(&p, 1) == cudaErrorMemoryAllocation);
    hostcuda_fail(nullptr);
    OK(cudaGetLastError());
}

static void kernel_fails()
{
    int *d = device_array<int>(1), x;
    void *p;

    hostcuda_fail("kernel:2");
    OK(launch(1, 1, 0, 0, set_to, d, 1));
    OK(launch(1, 1, 0, 0, set_to, d, 2));
    OK(launch(1, 1, 0, 0, set_to, d, 3));
    CHECK(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
    CHECK(cudaMalloc(&p, 1) == cudaErrorLaunchFailure); /* sticky */
    CHECK(cudaFree(d) == cudaErrorLaunchFailure);
    CHECK(launch(1, 1, 0, 0, nothing) == cudaErrorLaunchFailure);
    CHECK(cudaMemcpy(&x, d, sizeof x, cudaMemcpyDeviceToHost)
          == cudaErrorLaunchFailure);
    CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
    CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
    hostcuda_fail(nullptr);
    CHECK(value_at(d) == 1);
}

static void launch_fails()
{
    hostcuda_fail("cudaLaunchKernelEx:1");
    CHECK(launch(1, 1, 0, 0, nothing) == cudaErrorLaunchFailure);
    CHECK(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
}

static void bad_order() { hostcuda_fail("cudaMalloc"); }

static void error_names()
{
    CHECK(!std::strcmp(cudaGetErrorName(cudaErrorNoDevice),
                       "cudaErrorNoDevice"));
    CHECK(!std::strcmp(cudaGetErrorString(cudaErrorMemoryAllocation),
                       "out of memory"));
    CHECK(!std::strcmp(cudaGetErrorString((cudaError_t)12345),
                       "unrecognized error code"));
}

static void device_properties()
{
    cudaDeviceProp p;
    int n;

    OK(cudaGetDeviceProperties(&p, 0));
    CHECK(p.major == 9 && p.warpSize == 32 && p.totalGlobalMem == 4ull << 30);
    CHECK(p.sharedMemPerBlockOptin == 227 << 10 && p.multiProcessorCount > 0);
    CHECK(cudaGetDeviceProperties(&p, 1) == cudaErrorInvalidDevice);
    CHECK(cudaSetDevice(1) == cudaErrorInvalidDevice);
    OK(cudaSetDevice(0));
    CHECK(cudaSetDeviceFlags(8) == cudaErrorInvalidValue);
    OK(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
    OK(cudaGetDevice(&n));
    CHECK(n == 0);
    OK(cudaDriverGetVersion(&n));
    CHECK(n == CUDART_VERSION);
    OK(cudaRuntimeGetVersion(&n));
    CHECK(n == CUDART_VERSION);
}

static void several_devices()
{
    cudaDeviceProp p, other;
    int n;

    OK(cudaGetDeviceCount(&n));
    CHECK(n == 2);
    OK(cudaSetDevice(1));
    OK(cudaGetDevice(&n));
    CHECK(n == 1);
    CHECK(cudaSetDevice(2) == cudaErrorInvalidDevice);
    OK(cudaGetDeviceProperties(&p, 1));
    CHECK(p.major == 7 && p.minor == 5);
    OK(cudaGetDeviceProperties(&other, 0));
    CHECK(std::memcmp(&p.uuid, &other.uuid, sizeof p.uuid) != 0);
}

#define SEEDS(name, run)                                                      \
    {name, run, nullptr, ALL, nullptr},                                       \
        {name, run, nullptr, PLAIN, "HOSTCUDA_STREAMS=1"},                    \
        {name, run, nullptr, PLAIN, "HOSTCUDA_STREAMS=2"},                    \
        {name, run, nullptr, PLAIN, "HOSTCUDA_STREAMS=3"},                    \
        {name, run, nullptr, PLAIN, "HOSTCUDA_STREAMS=4"}

const test_case host_cases[] = {
    {"host_reads_device", host_reads_device, "host touches device memory",
     PLAIN | COUNTERS, nullptr},
    {"host_reads_device", host_reads_device, "SEGV", ASAN | TSAN, nullptr},
    {"host_function_reads_device", host_function_reads_device,
     "host touches device memory", PLAIN | COUNTERS, nullptr},
    {"stand_in_reads_device", stand_in_reads_device, nullptr, ALL, nullptr},
    {"stand_in_waits", stand_in_waits, nullptr, ALL, nullptr},
    {"copy_host_as_device", copy_host_as_device, "target is host memory", ALL,
     nullptr},
    {"copy_device_as_host", copy_device_as_host, "source is device memory", ALL,
     nullptr},
    {"copy_wrong_way", copy_wrong_way, "target is device memory", ALL, nullptr},
    {"copy_past_end", copy_past_end, "past the end of 8 bytes of device", ALL,
     nullptr},
    {"copy_past_pinned", copy_past_pinned, "past the end of 8 bytes of pinned",
     ALL, nullptr},
    {"set_host", set_host, "target is host memory", ALL, nullptr},
    {"copy_freed", copy_freed, "memory that was freed", ALL, nullptr},
    {"free_in_use", free_in_use, "freed that set_to, still queued, uses", ALL,
     nullptr},
    {"free_in_use_by_struct", free_in_use_by_struct, "freed that copy_one", ALL,
     nullptr},
    {"free_pinned_in_use", free_pinned_in_use, "freed that cudaMemcpyAsync",
     ALL, nullptr},
    {"free_twice", free_twice, "did not give or which was freed", ALL, nullptr},
    {"free_of_host", free_of_host, "cudaMalloc did not give", ALL, nullptr},
    {"free_host_of_device", free_host_of_device, "cudaMallocHost did not give",
     ALL, nullptr},
    SEEDS("frees", frees),
    {"memory_limit", memory_limit, nullptr, ALL, "HOSTCUDA_MEMORY=1000"},
    {"pinned_is_read_late", pinned_is_read_late, nullptr, ALL, nullptr},
    SEEDS("pageable_is_read_at_once", pageable_is_read_at_once),
    {"pinned_is_written_late", pinned_is_written_late, nullptr, ALL, nullptr},
    SEEDS("event_missing", event_missing),
    SEEDS("event_waited_for", event_waited_for),
    SEEDS("stream_zero_is_alone", stream_zero_is_alone),
    {"polling_ends", polling_ends, nullptr, ALL, nullptr},
    {"event_times", event_times, nullptr, ALL, nullptr},
    {"destroyed_early", destroyed_early, nullptr, ALL, nullptr},
    {"stream_destroyed", stream_destroyed, "stream is used that was destroyed",
     ALL, nullptr},
    {"event_destroyed", event_destroyed, "event is used that was destroyed",
     ALL, nullptr},
    {"grid_empty", grid_empty, "nothing: no GPU takes a grid", ALL, nullptr},
    {"grid_too_high", grid_too_high, "no GPU takes a grid", ALL, nullptr},
    {"block_too_big", block_too_big, "no GPU takes a block", ALL, nullptr},
    {"shared_not_asked", shared_not_asked, "that were asked for", ALL, nullptr},
    {"shared_too_much", shared_too_much, "a block has 232448", ALL, nullptr},
    {"launches", launches, nullptr, ALL, nullptr},
    {"errors_by_order", errors_by_order, nullptr, ALL,
     "HOSTCUDA_FAIL=cudaMalloc:3,cudaGetDeviceCount:1+"},
    {"kernel_fails", kernel_fails, nullptr, ALL, nullptr},
    {"launch_fails", launch_fails, nullptr, ALL, nullptr},
    {"bad_order", bad_order, "no list of CALL:NUMBER", ALL, nullptr},
    {"error_names", error_names, nullptr, ALL, nullptr},
    {"device_properties", device_properties, nullptr, ALL, nullptr},
    {"several_devices", several_devices, nullptr, ALL,
     "HOSTCUDA_DEVICES=9.0,7.5"},
    {nullptr, nullptr, nullptr, 0, nullptr},
};
