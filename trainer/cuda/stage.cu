/*
 * stage.cu - copy batches to the device.
 *
 * There are two slots, each with a pinned host buffer and a device buffer.  A
 * batch and the data derived from it are packed into the host buffer and copied
 * in a separate stream, while kernels process the previous batch.  The host
 * waits only for the copy of the batch before last:
 *
 *   kernels of this batch  wait for  its copy
 *   its copy               waits for  kernels of the batch before last
 *
 * SPDX-License-Identifier: MIT
 */
#include "cuda/stage.h"

#include <stdlib.h>
#include <string.h>

#include <new>

#include "cuda/groups.h"
#include "cuda/sdpa.h"
#include "cuda/segments.h"
#include "model/bucket_pad.h"

/* In a rounded batch, the room for spans is a multiple of this. */
#define SPANS_ROUND 64

/* The number of entries of all tables must fit in an int32_t. */
#define MOST_ROWS (INT32_MAX / TR_TABLES)

struct slot {
    tr_staged staged; /* first */
    tr_segments segments;
    tr_cuda *cuda;
    char *host;   /* pinned */
    char *device; /* a copy of `host` */
    size_t bytes;
    int32_t *spare;
    size_t spare_rows;
    cudaEvent_t copied;
    cudaEvent_t over; /* recorded after the kernels that read the slot */
    bool fresh;       /* c->stream has not yet been made to wait for the copy */
    bool read;        /* read by kernels launched since `over` was recorded */
};

struct tr_stages {
    slot slots[2];
    unsigned next;
};

bool tr_stages_open(tr_cuda *c)
{
    c->stages = new (std::nothrow) tr_stages();
    if (c->stages == NULL)
        return tr_cuda_good(c, cudaErrorMemoryAllocation, "batches");
    for (slot &s : c->stages->slots) {
        s.cuda = c;
        if (!tr_cuda_good(c,
                          cudaEventCreateWithFlags(&s.copied,
                                                   cudaEventDisableTiming),
                          "batches")
            || !tr_cuda_good(c,
                             cudaEventCreateWithFlags(
                                 &s.over, cudaEventDisableTiming),
                             "batches"))
            return false;
    }
    return true;
}

static void free_buffers(slot *s)
{
    cudaStreamSynchronize(s->cuda->copies);
    tr_cuda_wait(s->cuda, "batches");
    cudaFreeHost(s->host);
    tr_cuda_free(s->cuda, s->device);
    s->host = s->device = NULL;
    s->bytes = 0;
}

void tr_stages_close(tr_cuda *c)
{
    if (c->stages == NULL)
        return;
    for (slot &s : c->stages->slots) {
        if (s.cuda)
            free_buffers(&s);
        free(s.spare);
        if (s.copied)
            cudaEventDestroy(s.copied);
        if (s.over)
            cudaEventDestroy(s.over);
    }
    delete c->stages;
}

/* ---- Synchronisation ---- */

static void note_reader(slot *s)
{
    tr_cuda *const c = s->cuda;

    if (s->fresh)
        tr_cuda_good(c, cudaStreamWaitEvent(c->stream, s->copied, 0),
                     "batches");
    s->fresh = false;
    s->read = true;
}

const tr_staged *tr_cuda_staged(const tr_batch *batch)
{
    slot *const s = (slot *)(void *)batch;

    note_reader(s);
    return &s->staged;
}

void tr_cuda_reads(tr_cuda *c, const void *array)
{
    for (slot &s : c->stages->slots)
        if ((const char *)array >= s.device
            && (const char *)array < s.device + s.bytes)
            note_reader(&s);
}

const tr_staged *tr_cuda_holder(const tr_cuda *c, const void *array)
{
    for (const slot &s : c->stages->slots)
        if ((const char *)array >= s.device
            && (const char *)array < s.device + s.bytes)
            return &s.staged;
    return NULL;
}

/* ---- Packing ---- */

/* Position of the next array.  With host NULL, only sizes are measured. */
struct layout {
    char *host;
    char *device;
    size_t at;
};

/*
 * Reserves n numbers of type T.  Returns their host address; NULL if measuring.
 */
template <typename T>
static T *reserve(layout *l, size_t n, T **on_device)
{
    T *const host = l->host ? (T *)(l->host + l->at) : NULL;

    *on_device = l->host ? (T *)(l->device + l->at) : NULL;
    l->at += (n * sizeof(T) + 15) / 16 * 16;
    return host;
}

/* Copies an array and sets its pointer to its device address. */
template <typename T> static void pack(layout *l, size_t n, const T **array)
{
    T *there;
    T *const here = reserve(l, n, &there);

    if (here && n > 0)
        memcpy(here, *array, n * sizeof(T));
    *array = there;
}

/* Room for spans, rounded up so that later arrays seldom move. */
static uint32_t spans_of(const tr_batch *b)
{
    return b->rounded ? tr_round_up(b->n_spans, SPANS_ROUND) : b->n_spans;
}

/* Packs the spans and appends an empty span, rows 0 to 0; see groups.h. */
static void pack_spans(layout *l, tr_batch *b)
{
    const size_t bounds = (size_t)b->n_spans + 1;
    int32_t *there;
    int32_t *const here = reserve(l, (size_t)spans_of(b) + 3, &there);

    if (here) {
        memcpy(here, b->cu, bounds * sizeof *here);
        here[bounds] = here[bounds + 1] = 0;
    }
    b->cu = there;
}

/* Packs the arrays that kernels read. */
static void pack_arrays(layout *l, tr_batch *b)
{
    b->segment = NULL;
    b->mlm_seq = NULL;
    pack(l, b->n_rows, &b->token);
    pack(l, b->n_rows, &b->type);
    pack(l, b->n_rows, &b->position);
    if (b->place)
        pack(l, b->n_rows, &b->place);
    pack_spans(l, b);
    pack(l, b->n_seq, &b->cls_row);
    pack(l, b->n_seq, &b->nsp_label);
    pack(l, b->n_seq, &b->nsp_weight);
    pack(l, b->n_mlm, &b->mlm_row);
    pack(l, b->n_mlm, &b->mlm_label);
    pack(l, b->n_mlm, &b->mlm_weight);
}

static void pack_groups(layout *l, const tr_batch *batch, tr_group *groups)
{
    int32_t *there;
    int32_t *const here = reserve(l, tr_groups_max(spans_of(batch)), &there);

    if (here == NULL)
        return;
    tr_cuda_group(batch, here, groups);
    for (int g = 0; g < TR_GROUPS; g++)
        groups[g].span = there + (groups[g].span - here);
}

/* Packs the spans for cuDNN. */
static void pack_spans(layout *l, const tr_batch *batch, size_t hidden,
                       tr_spans *spans)
{
    int32_t *in, *out, *length;

    tr_spans_count(batch, spans);
    int32_t *const in_here = reserve(l, spans->count + (size_t)1, &in);
    int32_t *const out_here = reserve(l, spans->count + (size_t)1, &out);
    int32_t *const length_here = reserve(l, spans->count, &length);

    if (in_here)
        tr_spans_fill(batch, spans, hidden, in_here, out_here, length_here);
    spans->in = in;
    spans->out = out;
    spans->length = length;
}

/* Segments must be last: only the used part of the last array is copied. */
static void pack_segments(layout *l, const tr_batch *batch, int32_t *spare,
                          tr_segments *segments)
{
    const size_t rows = batch->n_rows;
    const int32_t *const index[TR_TABLES] = {batch->token, batch->position,
                                               batch->type};
    tr_segments there = {};

    segments->order = reserve(l, TR_TABLES * rows, &there.order);
    segments->longs = reserve(l, tr_longs_max(rows), &there.longs);
    segments->pieces = reserve(l, tr_pieces_max(rows), &there.pieces);
    if (l->host) {
        tr_segments_make(segments, batch->n_rows, index, spare);
        if (batch->rounded)
            tr_segments_round(segments, batch->n_rows);
        l->at = (size_t)((char *)(segments->pieces + segments->n_pieces)
                         - l->host);
    }
    segments->order = there.order;
    segments->longs = there.longs;
    segments->pieces = there.pieces;
}

/* Packs a batch, or only measures it if `host` is NULL.  Returns its size. */
static size_t pack_batch(slot *s, char *host, const tr_batch *batch)
{
    layout l = {host, s->device, 0};

    s->staged.batch = *batch;
    pack_arrays(&l, &s->staged.batch);
    pack_groups(&l, batch, s->staged.group);
    if (s->cuda->sdpa)
        pack_spans(&l, batch, s->cuda->ragged, &s->staged.spans);
    pack_segments(&l, batch, s->spare, &s->segments);
    s->staged.segments = &s->segments;
    return l.at;
}

/* ---- stage() ---- */

static bool make_room(tr_cuda *c, slot *s, size_t rows, size_t bytes)
{
    if (rows > s->spare_rows) {
        free(s->spare);
        s->spare = (int32_t *)malloc(rows * sizeof *s->spare);
        s->spare_rows = s->spare ? rows : 0;
        if (s->spare == NULL)
            return false;
    }
    if (bytes <= s->bytes)
        return true;
    free_buffers(s);
    bytes += bytes / 4; /* the next batches can be larger */
    if (!tr_cuda_memory(c, cudaMallocHost((void **)&s->host, bytes),
                        "pinned memory for batches")
        || !tr_cuda_memory(c, cudaMalloc((void **)&s->device, bytes),
                           "memory for batches"))
        return false;
    s->bytes = bytes;
    return true;
}

static bool ascends(size_t n, const int32_t *x)
{
    for (size_t i = 1; i < n; i++)
        if (x[i] <= x[i - 1])
            return false;
    return true;
}

static void copy(tr_cuda *c, slot *s, size_t bytes)
{
    tr_cuda_good(c, cudaStreamWaitEvent(c->copies, s->over, 0), "batches");
    tr_cuda_good(c,
                 cudaMemcpyAsync(s->device, s->host, bytes,
                                 cudaMemcpyHostToDevice, c->copies),
                 "batches");
    tr_cuda_good(c, cudaEventRecord(s->copied, c->copies), "batches");
    s->fresh = true;
}

static const tr_batch *stage(tr_device *d, const tr_batch *batch)
{
    tr_cuda *const c = cuda_of(d);
    slot *const s = &c->stages->slots[c->stages->next++ % 2];

    if (c->failed)
        return NULL;
    if (batch->n_rows > MOST_ROWS) {
        tr_cuda_good(c, cudaErrorInvalidValue, "batch with too many rows");
        return NULL;
    }
    for (slot &each : c->stages->slots) {
        if (each.read)
            tr_cuda_good(c, cudaEventRecord(each.over, c->stream),
                         "batches");
        each.read = false;
    }
    if (!tr_cuda_good(c, cudaEventSynchronize(s->copied), "batches")
        || !make_room(c, s, batch->n_rows, pack_batch(s, NULL, batch)))
        return NULL;
    copy(c, s, pack_batch(s, s->host, batch));
    s->staged.mlm_distinct = ascends(batch->n_mlm, batch->mlm_row);
    s->staged.cls_distinct = ascends(batch->n_seq, batch->cls_row);
    return c->failed ? NULL : &s->staged.batch;
}

void tr_cuda_stage_ops(tr_ops *ops)
{
    ops->stage = stage;
}
