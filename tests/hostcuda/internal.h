/*
 * internal.h - shared by the parts of hostcuda.
 *
 *     fibers.cc    CUDA threads as fibers: barriers and warp exchanges
 *     launch.cc    grids, blocks and the host threads that run them
 *     streams.cc   streams, events and the order of queued work
 *     graphs.cc    stream capture and graphs
 *     memory.cc    device and pinned memory, copies
 *     errors.cc    injected errors, the device's properties
 *     symbols.cc   names of kernels
 *     counters.cc  bytes that kernels read and write
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef HOSTCUDA_INTERNAL_H
#define HOSTCUDA_INTERNAL_H

#include "hostcuda.h"
#include "cuda_runtime.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define HOSTCUDA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HOSTCUDA_ASAN 1
#endif
#endif

#if defined(HOSTCUDA_ASAN)
#include <sanitizer/asan_interface.h>
#define HOSTCUDA_POISON(p, n) __asan_poison_memory_region(p, n)
#define HOSTCUDA_UNPOISON(p, n) __asan_unpoison_memory_region(p, n)
#else
#define HOSTCUDA_POISON(p, n) ((void)(p), (void)(n))
#define HOSTCUDA_UNPOISON(p, n) ((void)(p), (void)(n))
#endif

namespace hostcuda {

constexpr unsigned MAX_THREADS = 1024;
constexpr size_t MAX_SHARED = 227 << 10; /* sm_90's and sm_100's */
constexpr size_t PAGE = 4096;

/* -- errors.cc ----------------------------------------------------------- */

/* Called by one host thread at a time. */
extern std::recursive_mutex lock;

/* The error that a call has to return: a sticky or an injected one. */
cudaError_t begin(const char *call);
cudaError_t failed(cudaError_t error); /* for cudaGetLastError */
/* Makes all later calls fail, as after a kernel's trap. */
void stay_failed(cudaError_t error);
cudaError_t stayed();
size_t memory_limit();

#define HOSTCUDA_CALL                                                         \
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);               \
    if (const cudaError_t wrong = hostcuda::begin(__func__))                  \
        return wrong

/* -- symbols.cc ---------------------------------------------------------- */

/* A kernel's name, with template arguments and without parameters. */
const char *kernel_name(const void *kernel);

/* -- fibers.cc ----------------------------------------------------------- */

struct fiber;

struct counters { /* of one host thread during a launch */
    uint64_t read, read_distinct, written, written_distinct;
};

struct engine { /* one a host thread */
    struct fiber *fibers, *running;
    std::vector<unsigned> order;
    unsigned size, at_barrier, done, yes, yes_last;
    /* For each warp, a bit for each lane that waits or has ended. */
    unsigned waiting[MAX_THREADS / 32], ended[MAX_THREADS / 32];
    uint64_t gathered[MAX_THREADS / 32][32];
    const std::function<void()> *kernel;
    const void *symbol; /* of the running kernel, or null */
    struct counters counters;
    struct home *home;
};

extern thread_local engine *self;

/* A host thread's engine, ready for blocks of this many threads. */
void engine_begin(unsigned size, const std::function<void()> *kernel,
                  const void *symbol);
/* Runs a block's threads to their end; `shuffled` selects the order. */
void engine_run_block(dim3 block, uint64_t shuffled);
/* True if an address lies below the running fiber's stack. */
bool below_stack(const void *address);

/* -- launch.cc ----------------------------------------------------------- */

void run_grid(const cudaLaunchConfig_t &config, const void *symbol,
              const std::function<void()> &kernel);

/* -- streams.cc ---------------------------------------------------------- */

struct event_state { uint64_t asked = 0, came = 0; double when = 0; };
struct graph_run;
struct capture;

struct operation {
    std::string name;
    std::function<bool()> ready; /* null: always */
    std::function<void()> run; /* or one of these: */
    std::shared_ptr<event_state> record, wait;
    uint64_t count = 0;
    std::shared_ptr<graph_run> graph;
    std::vector<const void *> pointers; /* into memory that it uses */
    bool is_kernel = false;
};

/* The stream or event of a handle; faults if it was destroyed. */
hostcuda_stream *checked(cudaStream_t stream);
hostcuda_event *checked(cudaEvent_t event);
/* Queues work in a stream, or in the graph captured from it. */
cudaError_t put(cudaStream_t stream, operation o);
/* Runs work until a stream is empty. */
void drain(hostcuda_stream *until);
void run_operation(const operation &o);
uint64_t draw(); /* seeded by $HOSTCUDA_STREAMS */
bool is_stream_zero(const hostcuda_stream *s);
/* Calls f for all queued work, in graphs too. */
void each_queued(const std::function<void(const operation &)> &f);

/* -- graphs.cc ----------------------------------------------------------- */

bool is_capturing(const hostcuda_stream *s);
cudaError_t capture_operation(hostcuda_stream *s, operation o);
cudaError_t capture_record(hostcuda_stream *s, hostcuda_event *e);
/* A wait for a captured event, or in a captured stream. */
cudaError_t capture_wait(hostcuda_stream *s, hostcuda_event *e);
/* Fail a call that is illegal during any capture, or during this stream's. */
cudaError_t refuse_in_capture();
cudaError_t refuse_captured(hostcuda_stream *s);
cudaError_t refuse_implicit(const hostcuda_stream *s);
bool graph_may_run(const graph_run &run);
/* Runs one node; returns true after the last. */
bool graph_step(graph_run *run);
void each_node(const graph_run &run,
               const std::function<void(const operation &)> &f);

/* -- memory.cc ----------------------------------------------------------- */

/* While it is open, the host may touch device memory. */
void memory_open();
void memory_close();
bool in_device_memory(const void *p);
/* Describes an address in a fault's message; empty if unknown. */
std::string describe_address(const void *p);
/* The address range of device memory. */
extern char *device_begin;
extern const size_t device_size;
void each_allocation(const std::function<void(char *, size_t)> &f);

/* -- counters.cc --------------------------------------------------------- */

void count_begin();
void count_add(const struct counters &counters);
void count_end(const char *kernel);

} // namespace hostcuda

struct hostcuda_event {
    std::shared_ptr<hostcuda::event_state> state;
    unsigned flags = 0;
    bool destroyed = false;
    std::shared_ptr<hostcuda::capture> capture; /* if last recorded in one */
    std::vector<size_t> tails; /* nodes that precede the event */
};

struct hostcuda_stream {
    std::deque<hostcuda::operation> queue;
    uint64_t priority = 0;
    unsigned flags = 0;
    bool destroyed = false;
    std::shared_ptr<hostcuda::capture> capture; /* in progress, or null */
    std::vector<size_t> tails; /* nodes that precede its next one */
};

#endif /* HOSTCUDA_INTERNAL_H */
