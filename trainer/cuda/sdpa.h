/*
 * sdpa.h - attention by cuDNN instead of our own kernels, in bfloat16.
 *
 * cuDNN takes unpadded rows as tensors of spans x heads x longest x width with
 * ragged offsets, which give each span's start, in numbers, and a length in
 * rows.  Both are in device memory and are staged with the batch.
 *
 * cuDNN plans and compiles for a number of spans and a longest span, which
 * differ from batch to batch.  So both are rounded up to buckets.  The batch is
 * extended with empty spans, of length 0 at the end offset; they read and write
 * nothing.  Plans are cached by shape; a new one replaces the least recently
 * used.
 *
 *   spans    32, 64, 128, 256, 512, then multiples of 512
 *   longest  128, 256, 384, 512, then powers of two
 *
 * Forward stores the log-sum-exp of each row: one float per head and row of the
 * buckets.
 *
 * Dropout is cuDNN's own.  Its masks depend on a seed and an offset in device
 * memory, and on the index in spans x heads x longest x longest.  The seed is
 * derived from the step, the layer's site and the first row of the batch in
 * that of all ranks; the offset is 0.  A kernel writes both before each
 * operation, with equal values for forward and backward.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_SDPA_H
#define TR_CUDA_SDPA_H

#include "cuda/device.h"

/* Sets the bucket sizes of a batch; does not touch pointers. */
void tr_spans_count(const tr_batch *batch, tr_spans *spans);

/*
 * Fills arrays of spans->count numbers, one more for offsets.  A row has
 * `hidden` numbers in attention's output and three times as many in its input;
 * the total must not exceed INT32_MAX.
 */
void tr_spans_fill(const tr_batch *batch, const tr_spans *spans,
                   size_t hidden, int32_t *in, int32_t *out,
                   int32_t *length);

/* Queues a write of seed and offset to device memory, in c->stream. */
void tr_sdpa_seed(tr_cuda *c, int64_t *to, int64_t seed, int64_t offset);

#endif /* TR_CUDA_SDPA_H */
