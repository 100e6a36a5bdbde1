/*
 * device.c - the table of operations on processors, and their memory.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cpu/device.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/blas.h"

#define LINE BERT_LINE_BYTES

/* In front of each block is the address that malloc gave. */
static void *alloc_block(bert_device *d, size_t bytes)
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

static void release_block(bert_device *d, void *start)
{
    unsigned char *block;

    (void)d;
    if (!start)
        return;
    memcpy(&block, (unsigned char *)start - sizeof block, sizeof block);
    free(block);
}

static void fill_bytes(bert_device *d, void *to, int byte, size_t bytes)
{
    (void)d;
    memset(to, byte, bytes);
}

static void copy_bytes(bert_device *d, void *to, const void *from,
                       size_t bytes)
{
    (void)d;
    memcpy(to, from, bytes);
}

static void weights_written(bert_device *d, const real *weights, size_t n)
{
    (void)d;
    (void)weights;
    (void)n;
}

static const bert_batch *stage(bert_device *d, const bert_batch *batch)
{
    (void)d;
    return batch;
}

static const uint64_t *step_begin(bert_device *d, const bert_batch *batch,
                                  uint64_t seed)
{
    (void)d;
    (void)batch;
    (void)seed;
    return NULL;
}

static void step_end(bert_device *d)
{
    (void)d;
}

static bool finish(bert_device *d, bert_results *results, const char **why)
{
    bert_cpu *const c = bert_cpu_of(d);

    *results = c->results;
    *why = c->failed;
    c->results.steps = 0;
    memset(c->results.sum, 0, sizeof c->results.sum);
    c->halted = false;
    return !c->failed;
}

static void close_device(bert_device *d)
{
    free(bert_cpu_of(d)->sums);
    free(d);
}

static const bert_ops ops = {
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
    .linear_forward = bert_cpu_linear_forward,
    .linear_gelu_forward = bert_cpu_linear_gelu_forward,
    .linear_backward_input = bert_cpu_linear_backward_input,
    .linear_gelu_backward = bert_cpu_linear_gelu_backward,
    .linear_backward_weight = bert_cpu_linear_backward_weight,
    .gelu_backward = bert_cpu_gelu_backward,
    .norm_forward = bert_cpu_norm_forward,
    .sum_norm_forward = bert_cpu_sum_norm_forward,
    .norm_backward = bert_cpu_norm_backward,
    .embed_forward = bert_cpu_embed_forward,
    .embed_backward = bert_cpu_embed_backward,
    .attention_kept = bert_cpu_attention_kept,
    .attention_scratch = bert_cpu_attention_scratch,
    .attention_forward = bert_cpu_attention_forward,
    .attention_backward = bert_cpu_attention_backward,
    .gather_rows = bert_cpu_gather_rows,
    .scatter_rows = bert_cpu_scatter_rows,
    .tanh_forward = bert_cpu_tanh_forward,
    .tanh_backward = bert_cpu_tanh_backward,
    .cross_entropy = bert_cpu_cross_entropy,
    .lamb = bert_cpu_lamb,
    .close = close_device,
};

bert_device *bert_cpu_open(void)
{
    bert_cpu *const c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    openblas_set_num_threads(1);
    c->device = (bert_device){
        .ops = &ops, .value_size = sizeof(real), .on_host = true};
    return &c->device;
}
