/*
 * sdpa.cc - attention with cuDNN: plans, workspace and operations.
 * sdpa_graph.h builds the graphs; sdpa.h describes the layout of batches.
 *
 * Attention's scratch holds dropout's seed and offset, then cuDNN's workspace.
 *
 * This file must not contain kernels, because cudnn-frontend is compiled for
 * the host only.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cuda/sdpa_graph.h"

#include <stdio.h>
#include <string.h>

#include <exception>
#include <new>
#include <unordered_map>

#include "cuda/attention.h"
#include "cuda/sdpa.h"
#include "model/dropout.h"
#include "model/sizes.h"

#define WHERE "attention by cuDNN"
#define PLANS 16
#define SEED_BYTES 256 /* seed and offset, padded to align the workspace */

/* The shape of attention, and its plans. */
struct tr_sdpa {
    cudnnHandle_t handle;
    uint32_t heads, width;
    uint32_t dropout; /* rate in training, times 2^32 */
    struct plan {
        tr_sdpa_shape shape;
        std::unique_ptr<fe::graph::Graph> forward, backward;
        size_t workspace; /* for both directions, in bytes */
        uint64_t used;    /* sequence number of its last use; 0: unused */
    } plans[PLANS];
    uint64_t used;    /* number of uses so far */
    size_t workspace; /* size in the current scratch, in bytes */
    void (*close)(tr_device *d); /* the overridden function */
};

typedef tr_sdpa::plan plan;
typedef std::unordered_map<int64_t, void *> pointers;

const bool tr_cudnn_is_built = true;

/* ---- Failures ---- */

static bool fail(tr_cuda *c, const char *call, const char *said)
{
    if (!c->failed) {
        c->failed = cudaErrorUnknown;
        snprintf(c->why, sizeof c->why, WHERE ", %s: %s", call, said);
        for (char *p = c->why; (p = strchr(p, '\n')) != NULL;)
            *p = ' '; /* a message is a single line */
    }
    return false;
}

static bool good(tr_cuda *c, cudnnStatus_t status, const char *call)
{
    return status == CUDNN_STATUS_SUCCESS
           || fail(c, call, cudnnGetErrorString(status));
}

/* Calls f, which returns a cudnn-frontend error. */
template <typename F>
static bool attempt(tr_cuda *c, const char *call, F f)
{
    try {
        fe::error_t error = f();

        return error.is_good() || fail(c, call, error.get_message().c_str());
    } catch (const std::exception &e) {
        return fail(c, call, e.what());
    }
}

/* ---- Plans ---- */

static bool build(tr_cuda *c, const tr_sdpa_shape &shape, bool backward,
                  std::unique_ptr<fe::graph::Graph> *to, size_t *workspace)
{
    const cudnnHandle_t handle = c->sdpa->handle;
    fe::graph::Graph *const graph = new (std::nothrow) fe::graph::Graph();
    int64_t bytes = 0;

    to->reset(graph);
    if (graph == NULL)
        return fail(c, "graph", "no memory");
    if (!attempt(c, "graph", [&] {
            tr_sdpa_graph(*graph, shape, backward);
            return graph->validate();
        })
        || !attempt(c, "operations",
                    [&] { return graph->build_operation_graph(handle); })
        || !attempt(c, "plans",
                    [&] {
                        return graph->create_execution_plans(
                            {fe::HeurMode_t::A});
                    })
        || !attempt(c, "support", [&] { return graph->check_support(handle); })
        || !attempt(c, "plan", [&] { return graph->build_plans(handle); })
        || !attempt(c, "workspace",
                    [&] { return graph->get_workspace_size(bytes); }))
        return false;
    if ((size_t)bytes > *workspace)
        *workspace = (size_t)bytes;
    return true;
}

/*
 * Returns the cached plan or a new plan for a shape, or NULL on failure.
 * Before a plan is evicted, waits until its kernels have finished.
 */
static const plan *plan_of(tr_cuda *c, const tr_sdpa_shape &shape)
{
    tr_sdpa *const all = c->sdpa;
    plan *it = all->plans; /* the least recently used */

    if (c->failed)
        return NULL;
    for (plan &each : all->plans) {
        if (each.used && memcmp(&each.shape, &shape, sizeof shape) == 0) {
            each.used = ++all->used;
            return &each;
        }
        if (each.used < it->used)
            it = &each;
    }
    if (it->used && !tr_cuda_wait(c, WHERE))
        return NULL;
    *it = {};
    if (!build(c, shape, false, &it->forward, &it->workspace)
        || !build(c, shape, true, &it->backward, &it->workspace))
        return NULL; /* later operations do nothing */
    it->shape = shape;
    it->used = ++all->used;
    return it;
}

/* ---- Memory ---- */

/* Also returns SIZE_MAX if an offset would exceed int32_t. */
static size_t kept(tr_device *d, const tr_attend *a)
{
    const tr_sdpa *const s = cuda_of(d)->sdpa;
    tr_spans spans = {};

    if (tr_times(a->batch->n_rows, 3 * cuda_of(d)->ragged) > INT32_MAX
        || a->heads != s->heads || a->width != s->width
        || !attends_plainly(a))
        return SIZE_MAX;
    tr_spans_count(a->batch, &spans);
    return tr_times(tr_times(spans.count, spans.longest),
                    a->heads * sizeof(float));
}

/* Also creates the plans of the batch, before the step begins. */
static size_t scratch(tr_device *d, const tr_attend *a)
{
    tr_cuda *const c = cuda_of(d);
    tr_sdpa *const all = c->sdpa;
    tr_spans spans = {};
    const plan *p;

    tr_spans_count(a->batch, &spans);
    p = plan_of(c, {spans.count, spans.longest, all->heads, all->width,
                    all->dropout});
    all->workspace = p ? p->workspace : 0;
    /* 2 * SEED_BYTES: scratch is aligned only to a cache line */
    return p ? tr_plus(2 * SEED_BYTES, p->workspace) : SIZE_MAX;
}

/* ---- The operations ---- */

/* Returns a seed that differs between layers and steps (sdpa.h). */
static int64_t seed_of(const tr_attend *a, const tr_spans *spans)
{
    return (int64_t)tr_counter_rng(tr_counter_rng(a->dropout.seed, a->site),
                                   (uint32_t)spans->place);
}

/* Pointers that both directions pass to cuDNN; they cannot be const. */
static pointers pointers_of(const tr_cuda *c, const tr_attend *a,
                            const tr_spans *spans, int64_t *seed,
                            const void *qkv, const void *out)
{
    const size_t bytes = c->ragged * c->device.value_size;
    char *const q = (char *)qkv;

    return {{TR_SDPA_IN, (void *)spans->in},
            {TR_SDPA_OUT, (void *)spans->out},
            {TR_SDPA_ROWS_Q, (void *)spans->length},
            {TR_SDPA_ROWS_K, (void *)spans->length},
            {TR_SDPA_Q, q},
            {TR_SDPA_K, q + bytes},
            {TR_SDPA_V, q + 2 * bytes},
            {TR_SDPA_O, (void *)out},
            {TR_SDPA_STATS, a->kept},
            {TR_SDPA_SEED, seed},
            {TR_SDPA_OFFSET, seed + 1}};
}

/* Runs one direction; `more` holds its additional pointers. */
static void run(tr_cuda *c, const tr_attend *a, bool backward,
                const void *qkv, const void *out, const pointers &more)
{
    const tr_spans *const spans = &tr_cuda_staged(a->batch)->spans;
    const plan *const p
        = plan_of(c, {spans->count, spans->longest, (uint32_t)a->heads,
                      (uint32_t)a->width, a->dropout.threshold});
    int64_t *const seed = (int64_t *)((char *)a->scratch
                                      + -(uintptr_t)a->scratch % SEED_BYTES);

    if (p == NULL || a->batch->n_rows == 0)
        return;
    if (p->workspace > c->sdpa->workspace
        || a->heads * a->width != c->ragged || !attends_plainly(a)) {
        fail(c, "workspace", "opened for a different model");
        return;
    }
    if (a->dropout.threshold)
        tr_sdpa_seed(c, seed, seed_of(a, spans), 0);
    if (c->failed)
        return;
    attempt(c, backward ? "backward" : "forward", [&] {
        pointers all = pointers_of(c, a, spans, seed, qkv, out);
        void *const workspace = (char *)seed + SEED_BYTES;

        all.insert(more.begin(), more.end());
        if (a->dropout.threshold == 0) {
            all.erase(TR_SDPA_SEED);
            all.erase(TR_SDPA_OFFSET);
        }
        return (backward ? p->backward : p->forward)
            ->execute(c->sdpa->handle, all, workspace);
    });
}

static void forward(tr_device *d, const tr_attend *a, const void *qkv,
                    void *out)
{
    run(cuda_of(d), a, false, qkv, out, {});
}

static void backward(tr_device *d, const tr_attend *a, const void *qkv,
                     const void *out, const void *d_out, void *d_qkv)
{
    const size_t bytes = cuda_of(d)->ragged * d->value_size;
    char *const d_q = (char *)d_qkv;

    run(cuda_of(d), a, true, qkv, out,
        {{TR_SDPA_DO, (void *)d_out},
         {TR_SDPA_DQ, d_q},
         {TR_SDPA_DK, d_q + bytes},
         {TR_SDPA_DV, d_q + 2 * bytes}});
}

/* ---- Open and close ---- */

static void close_sdpa(tr_device *d)
{
    tr_cuda *const c = cuda_of(d);
    void (*const close)(tr_device *) = c->sdpa->close;

    cudaStreamSynchronize(c->stream);
    for (plan &each : c->sdpa->plans)
        each = {};
    if (c->sdpa->handle)
        (void)cudnnDestroy(c->sdpa->handle);
    delete c->sdpa;
    c->sdpa = NULL;
    close(d);
}

/* True if cuDNN supports the model on this GPU, in the smallest bucket. */
static bool has_plans(tr_cuda *c)
{
    const tr_sdpa *const s = c->sdpa;
    const tr_batch none = {};
    tr_spans spans = {};
    std::unique_ptr<fe::graph::Graph> graph;
    size_t workspace = 0;

    tr_spans_count(&none, &spans);
    for (bool back : {false, true})
        if (!build(c, {spans.count, spans.longest, s->heads, s->width,
                       s->dropout}, back, &graph, &workspace))
            return false;
    return true;
}

bool tr_cuda_use_cudnn(tr_device *d, size_t hidden, size_t heads,
                       double dropout, char *why, size_t size)
{
    tr_cuda *const c = cuda_of(d);
    tr_sdpa *const s = new (std::nothrow) tr_sdpa();

    if (s == NULL) {
        snprintf(why, size, WHERE ": no memory");
        return false;
    }
    s->heads = heads;
    s->width = hidden / heads;
    s->dropout = tr_dropout_at(dropout, 0).threshold;
    s->close = c->table.close;
    c->sdpa = s;
    c->ragged = hidden;
    c->table.close = close_sdpa;
    c->table.attention_kept = kept;
    c->table.attention_scratch = scratch;
    c->table.attention_forward = forward;
    c->table.attention_backward = backward;
    if (good(c, cudnnCreate(&s->handle), "a handle")
        && good(c, cudnnSetStream(s->handle, c->stream), "its stream")
        && has_plans(c))
        return true;
    snprintf(why, size, "%s", c->why);
    return false;
}
