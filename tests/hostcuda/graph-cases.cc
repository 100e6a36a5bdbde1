/*
 * graph-cases.cc - stream capture and graphs.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cases.h"

struct fixture {
    cudaStream_t main, side, other;
    cudaEvent_t forked, joined;
    int *d;

    fixture() : d(device_array<int>(4))
    {
        for (cudaStream_t *s : {&main, &side, &other})
            OK(cudaStreamCreateWithFlags(s, cudaStreamNonBlocking));
        OK(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
        OK(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
        OK(cudaMemset(d, 0, 4 * sizeof *d));
        OK(cudaDeviceSynchronize());
    }
    void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal)
    {
        OK(cudaStreamBeginCapture(main, mode));
    }
    cudaError_t end()
    {
        cudaGraph_t graph;
        const cudaError_t error = cudaStreamEndCapture(main, &graph);

        CHECK(!graph == (error != cudaSuccess));
        return error;
    }
    cudaStreamCaptureStatus status(cudaStream_t s)
    {
        cudaStreamCaptureStatus now;

        OK(cudaStreamIsCapturing(s, &now));
        return now;
    }
};

static __global__ void add_to(int *p, int n) { *p += n; }

static __global__ void double_sum(const int *a, const int *b, int *sum)
{
    *sum = 2 * *sum + *a + *b;
}

/* Fork by an event, work in two streams, join, and read both results. */
static cudaGraphExec_t capture_fork(fixture *f, bool wait, const int *pinned)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    size_t nodes;

    f->begin();
    OK(cudaMemcpyAsync(f->d, pinned, sizeof(int), cudaMemcpyHostToDevice,
                       f->main));
    OK(cudaEventRecord(f->forked, f->main));
    OK(cudaStreamWaitEvent(f->side, f->forked));
    CHECK(f->status(f->side) == cudaStreamCaptureStatusActive);
    CHECK(f->status(f->other) == cudaStreamCaptureStatusNone);
    OK(launch(1, 1, 0, f->main, add_to, f->d, 1));
    OK(launch(1, 1, 0, f->side, add_to, f->d + 1, 1));
    OK(cudaEventRecord(f->joined, f->side));
    if (wait)
        OK(cudaStreamWaitEvent(f->main, f->joined));
    OK(launch(1, 1, 0, f->main, double_sum, (const int *)f->d,
              (const int *)f->d + 1, f->d + 2));
    if (!wait) /* joined, but too late */
        OK(cudaStreamWaitEvent(f->main, f->joined));
    OK(cudaStreamEndCapture(f->main, &graph));
    CHECK(f->status(f->side) == cudaStreamCaptureStatusNone);
    OK(cudaGraphGetNodes(graph, nullptr, &nodes));
    CHECK(nodes == 4);
    OK(cudaGraphInstantiate(&exec, graph));
    OK(cudaGraphDestroy(graph));
    return exec;
}

static void graph_fork()
{
    fixture f;
    int *pinned = pinned_array<int>(1), want = 0;
    cudaGraphExec_t exec = capture_fork(&f, true, pinned);

    OK(cudaStreamSynchronize(f.main));
    *pinned = 10;
    CHECK(value_at(f.d) == 0); /* captured, not run */
    for (int i = 0; i < 10; i++) {
        *pinned = i; /* read at each launch */
        OK(cudaGraphLaunch(exec, f.main));
        OK(cudaStreamSynchronize(f.main));
        want = 2 * want + i + 1 + i + 1;
        CHECK(value_at(f.d + 2) == want);
    }
    /* Launches of one graph run one after another, in any streams. */
    for (int i = 0; i < 6; i++) {
        OK(cudaGraphLaunch(exec, i % 2 ? f.main : f.side));
        want = 2 * want + 9 + 1 + 11 + i;
    }
    OK(cudaGraphExecDestroy(exec));
    CHECK(value_at(f.d + 2) == want);
}

static void graph_not_joined_in_time()
{
    fixture f;
    int *pinned = pinned_array<int>(1), want = 0, wrong = 0;
    cudaGraphExec_t exec = capture_fork(&f, false, pinned);

    for (int i = 0; i < 20; i++) {
        *pinned = 0;
        OK(cudaGraphLaunch(exec, f.main));
        want += 1 + i + 1;
        wrong += value_at(f.d + 2) != want;
        OK(cudaMemcpy(f.d + 2, &want, sizeof want, cudaMemcpyHostToDevice));
        OK(launch(1, 1, 0, 0, add_to, f.d + 2, 0));
        want *= 2;
    }
    CHECK(wrong > 0);
}

static void graph_frees_used()
{
    fixture f;
    int *pinned = pinned_array<int>(1);

    *pinned = 0;
    OK(cudaGraphLaunch(capture_fork(&f, true, pinned), f.main));
    cudaFree(f.d);
}

static void graph_uses_freed()
{
    fixture f;
    int *pinned = pinned_array<int>(1);
    cudaGraphExec_t exec = capture_fork(&f, true, pinned);

    OK(cudaFree(f.d));
    OK(cudaGraphLaunch(exec, f.main));
    OK(cudaDeviceSynchronize());
}

/* -- refused during capture ---------------------------------------------- */

static void capture_refuses_host()
{
    fixture f;
    void *p;
    int x = 0;

#define REFUSED(call)                                                         \
    do {                                                                      \
        f.begin();                                                            \
        CHECK((call) == cudaErrorStreamCaptureUnsupported);                   \
        CHECK(f.status(f.main) == cudaStreamCaptureStatusInvalidated);        \
        CHECK(launch(1, 1, 0, f.main, add_to, f.d, 1)                         \
              == cudaErrorStreamCaptureInvalidated);                          \
        CHECK(f.end() == cudaErrorStreamCaptureInvalidated);                  \
        CHECK(f.status(f.main) == cudaStreamCaptureStatusNone);               \
    } while (0)

    REFUSED(cudaStreamSynchronize(f.main));
    REFUSED(cudaStreamQuery(f.main));
    REFUSED(cudaDeviceSynchronize());
    REFUSED(cudaMalloc(&p, 1));
    REFUSED(cudaMallocHost(&p, 1));
    REFUSED(cudaFree(f.d));
    REFUSED(cudaMemcpy(f.d, &x, sizeof x, cudaMemcpyHostToDevice));
    REFUSED(cudaMemset(f.d, 0, sizeof x));
    REFUSED(cudaMemcpyAsync(f.d, &x, sizeof x, cudaMemcpyHostToDevice, f.main));
    f.begin(cudaStreamCaptureModeRelaxed);
    OK(cudaMalloc(&p, 1));
    OK(cudaStreamSynchronize(f.other));
    OK(f.end());
    CHECK(value_at(f.d) == 0);
}

static void capture_refuses_streams()
{
    fixture f;
    cudaGraph_t graph;

    CHECK(cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal)
          == cudaErrorStreamCaptureUnsupported);
    CHECK(f.end() == cudaErrorIllegalState);

    f.begin(); /* work that is not joined */
    CHECK(cudaStreamBeginCapture(f.main, cudaStreamCaptureModeGlobal)
          == cudaErrorIllegalState);
    OK(cudaEventRecord(f.forked, f.main));
    OK(cudaStreamWaitEvent(f.side, f.forked));
    OK(launch(1, 1, 0, f.side, add_to, f.d, 1));
    CHECK(f.end() == cudaErrorStreamCaptureUnjoined);

    f.begin(); /* the wrong stream ends it */
    OK(cudaEventRecord(f.forked, f.main));
    OK(cudaStreamWaitEvent(f.side, f.forked));
    CHECK(cudaStreamEndCapture(f.side, &graph)
          == cudaErrorStreamCaptureUnmatched);
    CHECK(f.end() == cudaErrorStreamCaptureInvalidated);

    OK(launch(1, 1, 0, f.side, add_to, f.d, 1)); /* an event from outside */
    OK(cudaEventRecord(f.joined, f.side));
    f.begin();
    CHECK(cudaStreamWaitEvent(f.main, f.joined)
          == cudaErrorStreamCaptureIsolation);
    CHECK(f.end() == cudaErrorStreamCaptureInvalidated);

    f.begin(); /* two captures that meet */
    OK(cudaStreamBeginCapture(f.other, cudaStreamCaptureModeGlobal));
    OK(cudaEventRecord(f.forked, f.other));
    CHECK(cudaStreamWaitEvent(f.main, f.forked)
          == cudaErrorStreamCaptureMerge);
    CHECK(f.end() == cudaErrorStreamCaptureInvalidated);
    CHECK(cudaStreamEndCapture(f.other, &graph)
          == cudaErrorStreamCaptureInvalidated);
}

static void capture_refuses_events()
{
    fixture f;
    cudaStream_t blocking;
    cudaGraph_t graph;

    f.begin();
    OK(cudaEventRecord(f.forked, f.main));
    CHECK(cudaEventQuery(f.forked) == cudaErrorCapturedEvent);
    CHECK(cudaEventSynchronize(f.forked) == cudaErrorCapturedEvent);
    OK(f.end());
    CHECK(cudaStreamWaitEvent(f.side, f.forked) == cudaErrorCapturedEvent);
    OK(cudaEventRecord(f.forked, f.side)); /* like any again */
    OK(cudaEventSynchronize(f.forked));

    OK(cudaStreamCreate(&blocking));
    OK(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
    CHECK(launch(1, 1, 0, 0, add_to, f.d, 1) == cudaErrorStreamCaptureImplicit);
    CHECK(cudaStreamEndCapture(blocking, &graph)
          == cudaErrorStreamCaptureInvalidated);
}

static void graph_handles()
{
    fixture f;
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    CHECK(cudaGraphInstantiate(&exec, nullptr) == cudaErrorInvalidValue);
    CHECK(cudaGraphLaunch(nullptr, f.main) == cudaErrorInvalidValue);
    f.begin();
    OK(cudaStreamEndCapture(f.main, &graph)); /* an empty one */
    OK(cudaGraphInstantiate(&exec, graph));
    OK(cudaGraphLaunch(exec, f.main));
    OK(cudaStreamSynchronize(f.main));
    hostcuda_fail("cudaGraphLaunch:1=2");
    CHECK(cudaGraphLaunch(exec, f.main) == cudaErrorMemoryAllocation);
}

const test_case graph_cases[] = {
    {"graph_fork", graph_fork, nullptr, ALL, nullptr},
    {"graph_fork", graph_fork, nullptr, PLAIN, "HOSTCUDA_STREAMS=1"},
    {"graph_fork", graph_fork, nullptr, PLAIN, "HOSTCUDA_STREAMS=2"},
    {"graph_fork", graph_fork, nullptr, PLAIN, "HOSTCUDA_STREAMS=3"},
    {"graph_not_joined_in_time", graph_not_joined_in_time, nullptr, ALL,
     nullptr},
    {"graph_frees_used", graph_frees_used, "still queued, uses", ALL, nullptr},
    {"graph_uses_freed", graph_uses_freed, "device memory that was freed",
     PLAIN | COUNTERS, nullptr},
    {"capture_refuses_host", capture_refuses_host, nullptr, ALL, nullptr},
    {"capture_refuses_streams", capture_refuses_streams, nullptr, ALL, nullptr},
    {"capture_refuses_events", capture_refuses_events, nullptr, ALL, nullptr},
    {"graph_handles", graph_handles, nullptr, ALL, nullptr},
    {nullptr, nullptr, nullptr, 0, nullptr},
};
