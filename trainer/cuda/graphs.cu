/*
 * graphs.cu - repeated steps as CUDA graphs.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cuda/graphs.h"

#include <string.h>

#include <new>

#include "cuda/segments.h"
#include "cuda/stage.h"
#include "model/counter_rng.h"

#define WHERE "CUDA graph of a step"

/* Values that differ between steps of the same shape. */
struct numbers {
    uint64_t seed;
    tr_lamb_numbers lamb;
};

/* Everything that a step's launches depend on; compared byte by byte. */
struct shape {
    uint64_t rows, sequences, masked;
    uint64_t groups[TR_GROUPS][2]; /* count and longest */
    uint64_t pieces, longs, partials;
    uint64_t distinct; /* bit 0: masked rows, bit 1: first rows */
    /* With the counts, these determine the addresses of all arrays. */
    uint64_t token, place, weight, order;
};

/* A known shape, and its graph once the shape has been seen twice. */
struct known {
    struct shape shape;
    uint64_t used; /* last step of this shape; 0: free entry */
    uint64_t asked;
    cudaGraphExec_t exec;
};

enum mode {
    SINGLY,  /* operations are launched one by one */
    CAPTURED,
    REPLAYED
};

struct tr_graphs {
    known shapes[TR_SHAPES];
    known *now; /* entry of the current step */
    uint64_t steps;
    enum mode mode;
    uint64_t asked; /* digest of the step's launches */
    struct numbers numbers; /* the current step's, on the host... */
    struct numbers *there;  /* ...and on the device */
};

bool tr_graphs_open(tr_cuda *c)
{
    c->graphs = new (std::nothrow) tr_graphs();
    if (c->graphs == NULL)
        return tr_cuda_good(c, cudaErrorMemoryAllocation, WHERE);
    return tr_cuda_good(c,
                        cudaMalloc((void **)&c->graphs->there,
                                   sizeof *c->graphs->there),
                        "GPU memory");
}

/* A launched graph still runs to completion. */
static void destroy(known *k)
{
    if (k->exec)
        cudaGraphExecDestroy(k->exec);
    k->exec = NULL;
}

void tr_graphs_close(tr_cuda *c)
{
    if (c->graphs == NULL)
        return;
    for (known &each : c->graphs->shapes)
        destroy(&each);
    cudaFree(c->graphs->there);
    delete c->graphs;
    c->graphs = NULL;
}

void tr_cuda_free(tr_cuda *c, void *block)
{
    if (c->graphs && c->graphs->mode != SINGLY)
        tr_cuda_good(c, cudaErrorIllegalState, "memory of " WHERE);
    if (c->graphs && block)
        for (known &each : c->graphs->shapes)
            destroy(&each);
    tr_cuda_good(c, cudaFree(block), "GPU memory");
}

/* ---- Shapes ---- */

static shape shape_of(const tr_staged *staged)
{
    const tr_batch *const b = &staged->batch;
    const tr_segments *const segments = staged->segments;
    shape s = {};

    s.rows = b->n_rows;
    s.sequences = b->n_seq;
    s.masked = b->n_mlm;
    for (int g = 0; g < TR_GROUPS; g++) {
        s.groups[g][0] = staged->group[g].count;
        s.groups[g][1] = staged->group[g].longest;
    }
    s.pieces = segments->n_pieces;
    s.longs = segments->n_longs;
    s.partials = segments->n_partials;
    s.distinct = (uint64_t)staged->mlm_distinct
                 | (uint64_t)staged->cls_distinct << 1;
    s.token = (uintptr_t)b->token;
    s.place = (uintptr_t)b->place;
    s.weight = (uintptr_t)b->mlm_weight;
    s.order = (uintptr_t)segments->order;
    return s;
}

/*
 * Returns the entry of a shape.  If the shape is new, adds an entry and returns
 * NULL.
 */
static known *look_up(tr_graphs *g, const shape *s)
{
    known *oldest = g->shapes;

    g->steps++;
    for (known &each : g->shapes) {
        if (each.used && memcmp(&each.shape, s, sizeof *s) == 0) {
            each.used = g->steps;
            return &each;
        }
        if (each.used < oldest->used)
            oldest = &each;
    }
    destroy(oldest);
    oldest->shape = *s;
    oldest->used = g->steps;
    return NULL;
}

/* ---- Launches of a step ---- */

bool tr_cuda_asks(tr_cuda *c, const void *what, uint64_t size, uint64_t more)
{
    tr_graphs *const g = c->graphs;

    if (c->failed)
        return false;
    if (g->mode == SINGLY) {
        c->launches++;
        return true;
    }
    g->asked =
        tr_counter_rng(tr_counter_rng(g->asked ^ (uintptr_t)what, size), more);
    return g->mode == CAPTURED;
}

bool tr_cuda_replays(const tr_cuda *c)
{
    return c->graphs->mode == REPLAYED;
}

const tr_lamb_numbers *tr_graphs_lamb(tr_cuda *c,
                                      const tr_lamb_numbers *numbers)
{
    tr_graphs *const g = c->graphs;

    g->numbers.lamb = *numbers;
    return g->mode == SINGLY ? NULL : &g->there->lamb;
}

/* ---- A step ---- */

/* Grid: one block; block: one warp. */
static __global__ void __launch_bounds__(32)
numbers_kernel(numbers from, numbers *to)
{
    if (threadIdx.x == 0)
        *to = from;
}

static const uint64_t *step_begin(tr_device *d, const tr_batch *batch,
                                  uint64_t seed)
{
    tr_cuda *const c = cuda_of(d);
    tr_graphs *const g = c->graphs;
    const shape s = shape_of(tr_cuda_staged(batch)); /* not part of the graph */

    if (c->failed)
        return NULL;
    g->now = look_up(g, &s);
    if (g->now == NULL)
        return NULL;
    g->asked = 0;
    g->numbers.seed = seed;
    if (g->now->exec)
        g->mode = REPLAYED;
    else if (tr_cuda_good(c,
                          cudaStreamBeginCapture(
                              c->stream, cudaStreamCaptureModeThreadLocal),
                          WHERE))
        g->mode = CAPTURED;
    return &g->there->seed;
}

/* Ends the capture, whether it succeeded or not. */
static void end_capture(tr_cuda *c, known *k)
{
    cudaGraph_t graph = NULL;

    tr_cuda_good(c, cudaStreamEndCapture(c->stream, &graph), WHERE);
    if (!c->failed)
        tr_cuda_good(c, cudaGraphInstantiate(&k->exec, graph, 0), WHERE);
    if (graph)
        tr_cuda_good(c, cudaGraphDestroy(graph), WHERE);
    k->asked = c->graphs->asked;
}

static void step_end(tr_device *d)
{
    tr_cuda *const c = cuda_of(d);
    tr_graphs *const g = c->graphs;
    const enum mode mode = g->mode;

    g->mode = SINGLY;
    if (mode == SINGLY)
        return;
    if (mode == CAPTURED)
        end_capture(c, g->now);
    else if (g->now->asked != g->asked)
        tr_cuda_good(c, cudaErrorInvalidValue,
                     "the step differs from its graph");
    launch(c, c->stream, "numbers of a step", dim3(1), 32, 0, numbers_kernel,
           g->numbers, g->there);
    if (c->failed
        || !tr_cuda_good(c, cudaGraphLaunch(g->now->exec, c->stream), WHERE))
        return;
    c->graph_launches++;
}

void tr_cuda_graphs_ops(tr_ops *ops)
{
    ops->step_begin = step_begin;
    ops->step_end = step_end;
}
