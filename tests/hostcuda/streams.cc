/*
 * streams.cc - streams, events and the order of queued work.
 *
 * Nothing runs before the host waits for it.  Then streams take turns by random
 * priorities, so that an order of two streams that no event enforces is soon
 * reversed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "internal.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>

using namespace hostcuda;

static uint64_t seed()
{
    static const char *const said = std::getenv("HOSTCUDA_STREAMS");

    return said ? std::strtoull(said, nullptr, 10) : 0;
}

uint64_t hostcuda::draw()
{
    static std::mt19937_64 &random = *new std::mt19937_64(seed());

    return random();
}

/* Never freed, so that the use of a stale handle is detected. */
static hostcuda_stream *new_stream(unsigned flags)
{
    hostcuda_stream *s = new hostcuda_stream;

    s->flags = flags;
    s->priority = draw();
    return s;
}

static hostcuda_stream &stream_zero = *new_stream(cudaStreamDefault);
static std::vector<hostcuda_stream *> &streams
    = *new std::vector<hostcuda_stream *>{&stream_zero};

hostcuda_stream *hostcuda::checked(cudaStream_t stream)
{
    if (stream && stream->destroyed)
        fault("stream", 0, "a stream is used that was destroyed");
    return stream ? stream : &stream_zero;
}

hostcuda_event *hostcuda::checked(cudaEvent_t event)
{
    if (!event || event->destroyed)
        fault("event", 0, "an event is used that was destroyed, or never "
              "created");
    return event;
}

/* -- what runs next ------------------------------------------------------ */

static bool may_run(const hostcuda_stream *s)
{
    if (s->queue.empty())
        return false;
    const operation &o = s->queue.front();

    return (!o.wait || o.wait->came >= o.count)
           && (!o.graph || graph_may_run(*o.graph))
           && (!o.ready || stayed() || o.ready());
}

/* True if work may become ready: it waits for another process. */
static bool may_become_ready()
{
    return std::any_of(streams.begin(), streams.end(),
                       [](const hostcuda_stream *s) {
                           return !s->queue.empty() && s->queue.front().ready;
                       });
}

static double now()
{
    using namespace std::chrono;

    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

/* After a sticky error nothing runs any more. */
void hostcuda::run_operation(const operation &o)
{
    if (o.is_kernel && !stayed())
        if (const cudaError_t error = begin("kernel"))
            stay_failed(error);
    if (o.run && !stayed())
        o.run();
}

static void step(hostcuda_stream *s)
{
    if (s->queue.front().graph) {
        const std::shared_ptr<graph_run> run = s->queue.front().graph;

        if (graph_step(run.get()))
            s->queue.pop_front();
        return;
    }
    const operation o = std::move(s->queue.front());

    s->queue.pop_front();
    if (o.record) {
        o.record->came = std::max(o.record->came, o.count);
        o.record->when = now();
    }
    run_operation(o);
}

/*
 * One step of the ready stream with the highest priority; false if none is
 * ready.  Priorities change at random times (Burckhardt et al., "A Randomized
 * Scheduler with Probabilistic Guarantees", 2010).
 */
static bool advance()
{
    hostcuda_stream *best = nullptr;

    for (hostcuda_stream *s : streams)
        if (may_run(s) && (!best || s->priority > best->priority))
            best = s;
    if (!best)
        return false;
    step(best);
    if (draw() % 4 == 0)
        best->priority = draw();
    return true;
}

static void work_until(const std::function<bool()> &done)
{
    if (done())
        return;
    memory_open();
    while (!done())
        if (!advance() && !may_become_ready())
            fault("stream", 0, "waits for an event that is never recorded");
    memory_close();
}

void hostcuda::drain(hostcuda_stream *until)
{
    work_until([=] { return until->queue.empty(); });
}

/* With an odd seed, some work is done before the host waits for it. */
static void work_ahead()
{
    if (seed() % 2 == 0 || draw() % 4)
        return;
    memory_open();
    for (uint64_t n = draw() % 8; n && advance(); n--) {}
    memory_close();
}

void hostcuda::each_queued(const std::function<void(const operation &)> &f)
{
    for (const hostcuda_stream *s : streams)
        for (const operation &o : s->queue) {
            f(o);
            if (o.graph)
                each_node(*o.graph, f);
        }
}

cudaError_t hostcuda::put(cudaStream_t stream, operation o)
{
    hostcuda_stream *const s = checked(stream);

    if (is_capturing(s))
        return capture_operation(s, std::move(o));
    if (const cudaError_t error = refuse_implicit(s))
        return error;
    s->queue.push_back(std::move(o));
    work_ahead();
    return cudaSuccess;
}

cudaError_t hostcuda::enqueue(cudaStream_t stream, const char *name,
                              std::function<void()> run,
                              std::vector<const void *> pointers,
                              std::function<bool()> ready)
{
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);
    operation o;

    if (const cudaError_t error = begin(name))
        return error;
    o.name = name;
    o.ready = std::move(ready);
    o.run = std::move(run);
    o.pointers = std::move(pointers);
    o.is_kernel = true;
    return put(stream, std::move(o));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, void (*f)(void *),
                               void *data)
{
    HOSTCUDA_CALL;
    operation o;

    o.name = __func__;
    o.run = [=] {
        memory_close();
        f(data);
        memory_open();
    };
    return put(stream, std::move(o));
}

/* -- streams ------------------------------------------------------------- */

bool hostcuda::is_stream_zero(const hostcuda_stream *s)
{
    return s == &stream_zero;
}

cudaError_t cudaStreamCreate(cudaStream_t *s)
{
    return cudaStreamCreateWithFlags(s, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags)
{
    HOSTCUDA_CALL;
    *s = new_stream(flags);
    streams.push_back(*s);
    return cudaSuccess;
}

/* Queued work is still done. */
cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    HOSTCUDA_CALL;
    checked(s);
    if (!s)
        return failed(cudaErrorInvalidResourceHandle);
    if (const cudaError_t error = refuse_captured(s))
        return error;
    s->destroyed = true;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    HOSTCUDA_CALL;
    hostcuda_stream *const s = checked(stream);

    if (const cudaError_t error = refuse_captured(s))
        return error;
    drain(s);
    return failed(stayed());
}

/* Each query runs some of the work, so polling ends. */
static cudaError_t poll(const std::function<bool()> &done)
{
    if (!done()) {
        memory_open();
        advance();
        memory_close();
    }
    if (stayed())
        return failed(stayed());
    return done() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    HOSTCUDA_CALL;
    hostcuda_stream *const s = checked(stream);

    if (const cudaError_t error = refuse_captured(s))
        return error;
    return poll([=] { return s->queue.empty(); });
}

cudaError_t cudaDeviceSynchronize()
{
    HOSTCUDA_CALL;
    if (const cudaError_t error = refuse_in_capture())
        return error;
    for (hostcuda_stream *s : streams)
        drain(s);
    return failed(stayed());
}

/* -- events -------------------------------------------------------------- */

cudaError_t cudaEventCreate(cudaEvent_t *e)
{
    return cudaEventCreateWithFlags(e, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags)
{
    HOSTCUDA_CALL;
    *e = new hostcuda_event;
    (*e)->state = std::make_shared<event_state>();
    (*e)->flags = flags;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    HOSTCUDA_CALL;
    static auto &destroyed = *new std::vector<hostcuda_event *>;

    checked(e)->destroyed = true;
    destroyed.push_back(e); /* events never destroyed count as leaks */
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    HOSTCUDA_CALL;
    hostcuda_event *const e = checked(event);
    hostcuda_stream *const s = checked(stream);
    operation o;

    if (is_capturing(s))
        return capture_record(s, e);
    e->capture = nullptr;
    o.name = __func__;
    o.record = e->state;
    o.count = ++e->state->asked;
    return put(stream, std::move(o));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned)
{
    HOSTCUDA_CALL;
    hostcuda_event *const e = checked(event);
    hostcuda_stream *const s = checked(stream);
    operation o;

    if (is_capturing(s) || e->capture)
        return capture_wait(s, e);
    o.name = __func__;
    o.wait = e->state;
    o.count = e->state->asked;
    return put(stream, std::move(o));
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    HOSTCUDA_CALL;
    hostcuda_event *const e = checked(event);

    if (e->capture)
        return failed(cudaErrorCapturedEvent);
    const std::shared_ptr<event_state> state = e->state;

    return poll([=] { return state->came >= state->asked; });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    HOSTCUDA_CALL;
    hostcuda_event *const e = checked(event);

    if (e->capture)
        return failed(cudaErrorCapturedEvent);
    const std::shared_ptr<event_state> state = e->state;

    work_until([=] { return state->came >= state->asked; });
    return failed(stayed());
}

/* The host's time: it says nothing about a GPU's. */
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    HOSTCUDA_CALL;
    for (const hostcuda_event *e : {checked(from), checked(to)}) {
        if ((e->flags & cudaEventDisableTiming) || !e->state->asked)
            return failed(cudaErrorInvalidResourceHandle);
        if (e->state->came < e->state->asked)
            return failed(cudaErrorNotReady);
    }
    *ms = (float)(1e3 * (to->state->when - from->state->when));
    return cudaSuccess;
}
