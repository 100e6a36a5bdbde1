/*
 * attention.h - attention on unpadded rows, span by span.
 *
 * With S = Q K^T / sqrt(width), P = softmax(S), P' = dropout(P), O = P' V:
 * dV = P'^T dO, dP = dropout(dO V^T), dS = P (dP - D), D = sum of dO O over
 * the row, dQ = dS K / sqrt(width), dK = dS^T Q / sqrt(width).
 *
 * No array grows with the square of the length.  Forward keeps the logarithm
 * L of the sum of a row's exponentials, from which backward has P = exp(S - L)
 * again, as in FlashAttention (Dao et al. 2022, 2023); dropout is drawn again.
 *
 * There are three kernels.  A warp owns 16 rows of one head of one span, and
 * all rows of the span go past it in shared memory:
 *
 *   kernel       a warp owns   goes past   comes out
 *   forward      Q             K, V        O, L
 *   queries      Q, dO         K, V        dQ, D
 *   keys         K, V          Q, dO       dK, dV
 *
 * Nobody adds to what another thread wrote, and a row's sums are taken in the
 * order of the rows of its span: the bits of a result depend neither on the
 * order of blocks nor on where in a batch a span lies.  That costs two of nine
 * products over a backward pass that adds up dQ as it comes.
 *
 * Each has two forms.  In bfloat16 it runs on tensor cores: attention_mma.h.
 * In float and double, what attention_kernel.h has is plain sums, and serves
 * as the reference; the following is about them.
 *
 * Shared memory, in bytes, with r the size of a real, and w the head's width
 * rounded up to 32, 64 or 128:
 *
 *   what goes past, a row  2 (w r + 16), and in `keys` 2 r + 8 more
 *   forward, a warp        16 (w r + 16) + 16 * 36 r
 *   backward, a warp       2 * 16 (w r + 16) + 16 * 36 r
 *
 * If with 8 warps, or else with 4, all rows of the longest span of a group fit
 * into what a block may have, they stay there and are read once.  Otherwise,
 * and for spans of more than 512 rows, they come in chunks of 64, and a block
 * does only one tile of as many rows as its warps own.
 *
 * Global memory, in bytes, of both forms, for a span of n rows, where t is 1 if
 * the rows stay, and else n over the rows of a tile, rounded up (64 rows in
 * bfloat16); h = n width times the size of a value:
 *
 *   forward   reads (1 + 2 t) h, writes h + n r
 *   queries   reads (3 + 2 t) h + 2 n r, writes h + n r
 *   keys      reads (2 + 2 t) h + 2 t n r, writes 2 h
 *
 * Blocks that share rows are neighbours in the grid, so that all but the first
 * find them in the L2 cache.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_ATTENTION_H
#define TR_CUDA_ATTENTION_H

#include "cuda/device.h"

static constexpr unsigned TILE = 16; /* rows that a warp owns at a time */
static constexpr unsigned STEP = 32; /* rows that go past it at a time */
static constexpr unsigned MOST_WARPS = 8; /* of a block */

/* How a kernel is launched for a group. */
struct tr_attention_shape {
    uint32_t warps;
    uint32_t chunk; /* rows in shared memory, a multiple of 32 */
    uint32_t tiles; /* blocks that share a head of a span */
    size_t shared;  /* bytes */
};

/* `row` and `warp`: bytes of a row that goes past, and of a warp. */
struct tr_attention_shape tr_attention_shape_of(size_t limit,
                                                uint32_t longest,
                                                size_t row, size_t warp);

/* By tensor cores in bfloat16, and by plain sums in any type. */
void attention_forward_mma(tr_cuda *c, const tr_attend *a, const void *qkv,
                           void *out);
void attention_forward_plain(tr_cuda *c, const tr_attend *a,
                             const void *qkv, void *out);
void attention_backward_mma(tr_cuda *c, const tr_attend *a,
                            const void *qkv, const void *out,
                            const void *d_out, void *d_qkv);
void attention_backward_plain(tr_cuda *c, const tr_attend *a,
                              const void *qkv, const void *out,
                              const void *d_out, void *d_qkv);

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The operations of ops.h.  Heads wider than 128, for which there are no
 * kernels, would keep SIZE_MAX bytes.  `dense` makes no difference: whole
 * packs under a mask come to the same numbers, span by span.
 */
size_t tr_cuda_attention_kept(tr_device *d, const tr_batch *batch,
                              size_t hidden, size_t heads, bool dense);
size_t tr_cuda_attention_scratch(tr_device *d, const tr_batch *batch,
                                 size_t hidden, size_t heads, bool dense);
void tr_cuda_attention_forward(tr_device *d, const tr_attend *a,
                               const void *qkv, void *out);
void tr_cuda_attention_backward(tr_device *d, const tr_attend *a,
                                const void *qkv, const void *out,
                                const void *d_out, void *d_qkv);

#ifdef __cplusplus
}
#endif

#endif /* TR_CUDA_ATTENTION_H */
