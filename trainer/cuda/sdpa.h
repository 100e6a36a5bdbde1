/*
 * sdpa.h - attention by cuDNN instead of our kernels, in bfloat16.
 *
 * cuDNN takes unpadded rows as tensors of spans x heads x longest x width with
 * ragged offsets: where each span begins, in numbers, and how many rows it
 * has.  Both lie in the device's memory and are staged with the batch.
 *
 * It plans and compiles for the number of spans and the longest of them, which
 * differ in every batch.  So both are rounded up to buckets, and the batch gets
 * empty spans behind its own, of length 0 and with the offset of its end: they
 * read and write nothing.  Plans are kept by shape; a new one takes the place
 * of the least recently used.
 *
 *   spans    32, 64, 128, 256, 512, and then multiples of 512
 *   longest  128, 256, 384, 512, and then powers of two
 *
 * Forward keeps the logarithm of the sum of each row's exponentials: a float
 * for each row of the buckets and each head.
 *
 * Dropout is cuDNN's own.  Its masks follow from a seed and an offset in device
 * memory, and from the place of a number in spans x heads x longest x longest.
 * Our seed follows from the step, the layer's site and the batch's first place
 * among all ranks; the offset is 0.  A kernel writes both in front of each
 * operation, the same for forward and backward.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_SDPA_H
#define TR_CUDA_SDPA_H

#include "cuda/device.h"

/* The buckets of a batch; pointers are left as they are. */
void tr_spans_count(const tr_batch *batch, tr_spans *spans);

/*
 * Fills arrays of spans->count numbers, of the offsets one more.  A row has
 * `hidden` numbers in attention's output and 3 times as many in its input,
 * which makes INT32_MAX at most of all rows.
 */
void tr_spans_fill(const tr_batch *batch, const tr_spans *spans,
                   size_t hidden, int32_t *in, int32_t *out,
                   int32_t *length);

/* Writes both to the device's memory, in c->stream. */
void tr_sdpa_seed(tr_cuda *c, int64_t *to, int64_t seed, int64_t offset);

#endif /* TR_CUDA_SDPA_H */
