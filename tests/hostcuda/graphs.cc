/*
 * graphs.cc - stream capture and graphs.
 *
 * Work queued in a captured stream becomes a node.  A graph's nodes run one by
 * one in a random order that its edges allow, interleaved with the work of
 * other streams.
 *
 * SPDX-License-Identifier: MIT
 */
#include "internal.h"

#include <algorithm>

using namespace hostcuda;

struct node {
    operation o;
    std::vector<size_t> after; /* nodes of lower numbers */
};

struct hostcuda::capture {
    cudaStreamCaptureMode mode;
    hostcuda_stream *origin;
    std::vector<hostcuda_stream *> streams;
    std::vector<node> nodes;
    bool invalid, ended;
};

typedef std::shared_ptr<const std::vector<node>> nodes;

struct hostcuda_graph { nodes list; };
struct hostcuda_graph_exec {
    nodes list;
    std::shared_ptr<bool> is_running; /* one launch at a time */
};

struct hostcuda::graph_run {
    nodes list;
    std::shared_ptr<bool> is_running;
    std::vector<bool> done;
    size_t left;
    bool begun;
};

static std::vector<std::shared_ptr<capture>> &captures
    = *new std::vector<std::shared_ptr<capture>>;

/* -- calls that are illegal during a capture ----------------------------- */

static cudaError_t invalidate(capture *c, cudaError_t error)
{
    c->invalid = true;
    return failed(error);
}

bool hostcuda::is_capturing(const hostcuda_stream *s)
{
    return s->capture != nullptr;
}

cudaError_t hostcuda::refuse_in_capture()
{
    cudaError_t error = cudaSuccess;

    for (const auto &c : captures)
        if (c->mode != cudaStreamCaptureModeRelaxed)
            error = invalidate(c.get(), cudaErrorStreamCaptureUnsupported);
    return error;
}

cudaError_t hostcuda::refuse_captured(hostcuda_stream *s)
{
    return is_capturing(s) ? invalidate(s->capture.get(),
                                        cudaErrorStreamCaptureUnsupported)
                           : cudaSuccess;
}

/* Stream 0 waits for all streams except non-blocking ones. */
cudaError_t hostcuda::refuse_implicit(const hostcuda_stream *s)
{
    cudaError_t error = cudaSuccess;

    for (const auto &c : captures)
        if (is_stream_zero(s) && !(c->origin->flags & cudaStreamNonBlocking))
            error = invalidate(c.get(), cudaErrorStreamCaptureImplicit);
    return error;
}

/* -- capture ------------------------------------------------------------- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
                                   cudaStreamCaptureMode mode)
{
    HOSTCUDA_CALL;
    hostcuda_stream *const s = checked(stream);

    if (is_stream_zero(s))
        return failed(cudaErrorStreamCaptureUnsupported);
    if (is_capturing(s))
        return failed(cudaErrorIllegalState);
    s->capture = std::make_shared<capture>();
    s->capture->mode = mode;
    s->capture->origin = s;
    s->capture->streams.push_back(s);
    s->tails.clear();
    captures.push_back(s->capture);
    return cudaSuccess;
}

cudaError_t hostcuda::capture_operation(hostcuda_stream *s, operation o)
{
    capture *const c = s->capture.get();

    if (c->invalid)
        return failed(cudaErrorStreamCaptureInvalidated);
    c->nodes.push_back({std::move(o), s->tails});
    s->tails = {c->nodes.size() - 1};
    return cudaSuccess;
}

cudaError_t hostcuda::capture_record(hostcuda_stream *s, hostcuda_event *e)
{
    if (s->capture->invalid)
        return failed(cudaErrorStreamCaptureInvalidated);
    e->capture = s->capture;
    e->tails = s->tails;
    return cudaSuccess;
}

cudaError_t hostcuda::capture_wait(hostcuda_stream *s, hostcuda_event *e)
{
    if (s->capture && s->capture->invalid)
        return failed(cudaErrorStreamCaptureInvalidated);
    if (!e->capture)
        return e->state->asked
                   ? invalidate(s->capture.get(),
                                cudaErrorStreamCaptureIsolation)
                   : cudaSuccess;
    if (e->capture->ended)
        return s->capture ? invalidate(s->capture.get(),
                                       cudaErrorStreamCaptureIsolation)
                          : failed(cudaErrorCapturedEvent);
    if (e->capture->invalid)
        return failed(cudaErrorStreamCaptureInvalidated);
    if (is_stream_zero(s))
        return invalidate(e->capture.get(), cudaErrorStreamCaptureImplicit);
    if (!s->capture) {
        s->capture = e->capture;
        s->tails = e->tails;
        s->capture->streams.push_back(s);
        return cudaSuccess;
    }
    if (s->capture != e->capture) {
        invalidate(s->capture.get(), cudaErrorStreamCaptureMerge);
        return invalidate(e->capture.get(), cudaErrorStreamCaptureMerge);
    }
    for (size_t t : e->tails)
        if (std::find(s->tails.begin(), s->tails.end(), t) == s->tails.end())
            s->tails.push_back(t);
    return cudaSuccess;
}

/* True if all nodes are the origin's last ones or precede them. */
static bool is_joined(const capture &c)
{
    std::vector<bool> before(c.nodes.size());

    for (size_t t : c.origin->tails)
        before[t] = true;
    for (size_t i = c.nodes.size(); i-- > 0;)
        if (before[i])
            for (size_t a : c.nodes[i].after)
                before[a] = true;
    return std::find(before.begin(), before.end(), false) == before.end();
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    HOSTCUDA_CALL;
    hostcuda_stream *const s = checked(stream);
    const std::shared_ptr<capture> c = s->capture;

    *graph = nullptr;
    if (!c)
        return failed(cudaErrorIllegalState);
    if (c->origin != s)
        return invalidate(c.get(), cudaErrorStreamCaptureUnmatched);
    const bool joined = is_joined(*c);

    for (hostcuda_stream *part : c->streams) {
        part->capture = nullptr;
        part->tails.clear();
    }
    c->ended = true;
    captures.erase(std::find(captures.begin(), captures.end(), c));
    if (c->invalid)
        return failed(cudaErrorStreamCaptureInvalidated);
    if (!joined)
        return failed(cudaErrorStreamCaptureUnjoined);
    *graph = new hostcuda_graph{
        std::make_shared<const std::vector<node>>(std::move(c->nodes))};
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                  cudaStreamCaptureStatus *status)
{
    HOSTCUDA_CALL;
    const hostcuda_stream *const s = checked(stream);

    *status = !s->capture          ? cudaStreamCaptureStatusNone
              : s->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                    : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

/* -- graphs -------------------------------------------------------------- */

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *list,
                              size_t *count)
{
    HOSTCUDA_CALL;
    if (list) /* no emulated call takes one */
        return failed(cudaErrorNotSupported);
    *count = graph->list->size();
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long)
{
    HOSTCUDA_CALL;
    *exec = nullptr;
    if (!graph)
        return failed(cudaErrorInvalidValue);
    *exec = new hostcuda_graph_exec{graph->list, std::make_shared<bool>(false)};
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    HOSTCUDA_CALL;
    operation o;

    if (!exec)
        return failed(cudaErrorInvalidValue);
    if (is_capturing(checked(stream))) /* a graph in a graph: not emulated */
        return failed(cudaErrorNotSupported);
    o.name = __func__;
    o.graph = std::make_shared<graph_run>();
    *o.graph = {exec->list, exec->is_running,
                std::vector<bool>(exec->list->size()), exec->list->size(),
                false};
    return put(stream, std::move(o));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    HOSTCUDA_CALL;
    delete graph;
    return cudaSuccess;
}

/* Queued launches of it still run. */
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    HOSTCUDA_CALL;
    delete exec;
    return cudaSuccess;
}

bool hostcuda::graph_may_run(const graph_run &run)
{
    return run.begun || !*run.is_running;
}

static bool is_ready(const graph_run &run, size_t i)
{
    if (run.done[i])
        return false;
    for (size_t a : (*run.list)[i].after)
        if (!run.done[a])
            return false;
    return true;
}

bool hostcuda::graph_step(graph_run *run)
{
    const size_t count = run->list->size();
    size_t i = count ? draw() % count : 0;

    *run->is_running = run->begun = true;
    if (run->left) {
        while (!is_ready(*run, i))
            i = (i + 1) % count;
        run_operation((*run->list)[i].o);
        run->done[i] = true;
        run->left--;
    }
    if (run->left)
        return false;
    *run->is_running = false;
    return true;
}

void hostcuda::each_node(const graph_run &run,
                         const std::function<void(const operation &)> &f)
{
    for (size_t i = 0; i < run.list->size(); i++)
        if (!run.done[i])
            f((*run.list)[i].o);
}
