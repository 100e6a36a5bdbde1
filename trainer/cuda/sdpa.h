/*
 * sdpa.h - bfloat16 attention with cuDNN instead of the kernels of attention.h.
 *
 * cuDNN accepts unpadded rows as ragged tensors of spans x heads x longest x
 * width: it needs the offset of each span, in numbers, and its length, in
 * rows.  Offsets and lengths are in device memory and are staged with the
 * batch.
 *
 * cuDNN's plans are compiled for a number of spans and for the length of the
 * longest span.  Both differ from batch to batch, so they are rounded up to
 * bucket sizes.  Empty spans, which read and write nothing, are appended to the
 * batch.  Plans are cached by shape; a new plan replaces the least recently
 * used one.
 *
 *   spans    32, 64, 128, 256, 512, then multiples of 512
 *   longest  128, 256, 384, 512, then powers of two
 *
 * Forward stores the log-sum-exp of each row as a float, for every head and for
 * all rows of the buckets.
 *
 * cuDNN also draws dropout.  Its masks depend on a seed and an offset in device
 * memory, and on the index in spans x heads x longest x longest.  The seed is
 * derived from the step, the layer's site and the first row's number in the
 * batch of all ranks; the offset is 0.  A kernel writes the seed and the offset
 * before each operation; forward and backward get the same values.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_SDPA_H
#define TR_CUDA_SDPA_H

#include "cuda/device.h"

/* Sets all members of `spans` except the pointers. */
void tr_spans_count(const tr_batch *batch, tr_spans *spans);

/*
 * Fills the arrays: spans->count lengths, and offsets with one more entry.  A
 * row has `hidden` numbers in attention's output and three times as many in its
 * input; no offset may exceed INT32_MAX.
 */
void tr_spans_fill(const tr_batch *batch, const tr_spans *spans,
                   size_t hidden, int32_t *in, int32_t *out,
                   int32_t *length);

/* Queues a kernel in c->stream that writes the seed and the offset to `to`. */
void tr_sdpa_seed(tr_cuda *c, int64_t *to, int64_t seed, int64_t offset);

#endif /* TR_CUDA_SDPA_H */
