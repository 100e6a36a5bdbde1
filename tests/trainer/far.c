/*
 * far.c - a device whose memory the host cannot access.
 *
 * Staged batches alternate between two buffers, and allocated memory is filled
 * with garbage.
 *
 * SPDX-License-Identifier: MIT
 */
/* packtrain-far defines it as far_open. */
#undef tr_cpu_open

#include "far.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/device.h"

/* Arrays of a batch. */
enum { ARRAYS = 12 };

/* A program has one such device. */
static struct {
    const tr_ops *cpu;
    tr_ops ops;
    tr_batch staged[2];
    void *copies[2][ARRAYS];
    unsigned turn;
} far;

static void *alloc_spoilt(tr_device *d, size_t bytes)
{
    void *const block = far.cpu->alloc(d, bytes);

    if (block)
        memset(block, 0xff, bytes);
    return block;
}

static void *copy(const void *from, size_t n, size_t size, void **place)
{
    free(*place);
    *place = malloc(n * size + 1);
    if (*place)
        memcpy(*place, from, n * size);
    return *place;
}

static const tr_batch *stage(tr_device *d, const tr_batch *b)
{
    const unsigned turn = far.turn++ % 2;
    void **const c = far.copies[turn];
    tr_batch *const s = &far.staged[turn];

    (void)d;
    *s = *b;
    s->token = copy(b->token, b->n_rows, sizeof *b->token, c);
    s->type = copy(b->type, b->n_rows, sizeof *b->type, c + 1);
    s->position = copy(b->position, b->n_rows, sizeof *b->position, c + 2);
    s->segment = copy(b->segment, b->n_rows, sizeof *b->segment, c + 3);
    s->cu = copy(b->cu, (size_t)b->n_spans + 1, sizeof *b->cu, c + 4);
    s->cls_row = copy(b->cls_row, b->n_seq, sizeof *b->cls_row, c + 5);
    s->nsp_label = copy(b->nsp_label, b->n_seq, sizeof *b->nsp_label, c + 6);
    s->nsp_weight =
        copy(b->nsp_weight, b->n_seq, sizeof *b->nsp_weight, c + 7);
    s->mlm_row = copy(b->mlm_row, b->n_mlm, sizeof *b->mlm_row, c + 8);
    s->mlm_label = copy(b->mlm_label, b->n_mlm, sizeof *b->mlm_label, c + 9);
    s->mlm_seq = copy(b->mlm_seq, b->n_mlm, sizeof *b->mlm_seq, c + 10);
    s->mlm_weight =
        copy(b->mlm_weight, b->n_mlm, sizeof *b->mlm_weight, c + 11);
    for (int i = 0; i < ARRAYS; i++)
        if (!c[i])
            return NULL;
    return s;
}

/* The device failure that FAR_FAILS in the environment simulates. */
static bool finish(tr_device *d, tr_results *results, const char **why)
{
    const bool good = far.cpu->finish(d, results, why);

    if (getenv("FAR_FAILS") == NULL)
        return good;
    *why = "the device fell off the bus";
    return false;
}

static void close_far(tr_device *d)
{
    for (int i = 0; i < 2 * ARRAYS; i++)
        free(far.copies[i / ARRAYS][i % ARRAYS]);
    far.cpu->close(d);
}

tr_device *far_open(void)
{
    tr_device *const d = tr_cpu_open();

    if (!d)
        return NULL;
    far.cpu = d->ops;
    far.ops = *d->ops;
    far.ops.alloc = alloc_spoilt;
    far.ops.stage = stage;
    far.ops.finish = finish;
    far.ops.close = close_far;
    d->ops = &far.ops;
    d->on_host = false;
    return d;
}
