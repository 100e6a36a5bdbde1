/*
 * device.c - the CPU's table of operations, and its memory.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cpu/device.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/blas.h"

#define LINE TR_LINE_BYTES

/* The address that malloc() returned is stored just before the block. */
static void *alloc_block(tr_device *d, size_t bytes)
{
    unsigned char *const block =
        bytes > PTRDIFF_MAX - 2 * LINE ? NULL : malloc(bytes + 2 * LINE);
    unsigned char *start;

    (void)d;
    if (!block)
        return NULL;
    start = block + 2 * LINE - (uintptr_t)block % LINE;
    memcpy(start - sizeof block, &block, sizeof block);
    return start;
}

static void release_block(tr_device *d, void *start)
{
    unsigned char *block;

    (void)d;
    if (!start)
        return;
    memcpy(&block, (unsigned char *)start - sizeof block, sizeof block);
    free(block);
}

static void fill_bytes(tr_device *d, void *to, int byte, size_t bytes)
{
    (void)d;
    memset(to, byte, bytes);
}

static void copy_bytes(tr_device *d, void *to, const void *from, size_t bytes)
{
    (void)d;
    memcpy(to, from, bytes);
}

static void weights_written(tr_device *d, const real *weights, size_t n)
{
    (void)d;
    (void)weights;
    (void)n;
}

static const tr_batch *stage(tr_device *d, const tr_batch *batch)
{
    (void)d;
    return batch;
}

static const uint64_t *step_begin(tr_device *d, const tr_batch *batch,
                                  uint64_t seed)
{
    (void)d;
    (void)batch;
    (void)seed;
    return NULL;
}

static void step_end(tr_device *d)
{
    (void)d;
}

static bool finish(tr_device *d, tr_results *results, const char **why)
{
    tr_cpu *const c = tr_cpu_of(d);

    *results = c->results;
    *why = c->failed;
    c->results.steps = 0;
    memset(c->results.sum, 0, sizeof c->results.sum);
    c->halted = false;
    return !c->failed;
}

static void close_device(tr_device *d)
{
    for (size_t i = 0; i < TR_CPU_TURNS; i++)
        tr_turns_free(tr_cpu_of(d)->turns + i);
    free(tr_cpu_of(d)->sums);
    free(d);
}

static const tr_ops ops = {
    .alloc = alloc_block,
    .release = release_block,
    .fill = fill_bytes,
    .upload = copy_bytes,
    .download = copy_bytes,
    .weights_written = weights_written,
    .stage = stage,
    .step_begin = step_begin,
    .step_end = step_end,
    .finish = finish,
    .linear_forward = tr_cpu_linear_forward,
    .linear_gelu_forward = tr_cpu_linear_gelu_forward,
    .linear_backward_input = tr_cpu_linear_backward_input,
    .linear_gelu_backward = tr_cpu_linear_gelu_backward,
    .linear_backward_weight = tr_cpu_linear_backward_weight,
    .gelu_backward = tr_cpu_gelu_backward,
    .gate_forward = tr_cpu_gate_forward,
    .gate_backward = tr_cpu_gate_backward,
    .rotate = tr_cpu_rotate,
    .norm_forward = tr_cpu_norm_forward,
    .sum_norm_forward = tr_cpu_sum_norm_forward,
    .norm_backward = tr_cpu_norm_backward,
    .add_norm_forward = tr_cpu_add_norm_forward,
    .add_norm_backward = tr_cpu_add_norm_backward,
    .head_norm_forward = tr_cpu_head_norm_forward,
    .head_norm_backward = tr_cpu_head_norm_backward,
    .lookup_forward = tr_cpu_lookup_forward,
    .lookup_backward = tr_cpu_lookup_backward,
    .embed_forward = tr_cpu_embed_forward,
    .embed_backward = tr_cpu_embed_backward,
    .attention_kept = tr_cpu_attention_kept,
    .attention_scratch = tr_cpu_attention_scratch,
    .attention_forward = tr_cpu_attention_forward,
    .attention_backward = tr_cpu_attention_backward,
    .gather_rows = tr_cpu_gather_rows,
    .scatter_rows = tr_cpu_scatter_rows,
    .tanh_forward = tr_cpu_tanh_forward,
    .tanh_backward = tr_cpu_tanh_backward,
    .compare_logits = tr_cpu_compare_logits,
    .cross_entropy = tr_cpu_cross_entropy,
    .lamb = tr_cpu_lamb,
    .close = close_device,
};

tr_device *tr_cpu_open(void)
{
    tr_cpu *const c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    openblas_set_num_threads(1);
    c->device = (tr_device){
        .ops = &ops,
        .value_size = sizeof(real),
        .on_host = true};
    return &c->device;
}
