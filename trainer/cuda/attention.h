/*
 * attention.h - attention on unpadded rows, span by span.
 *
 * With S = Q K^T / sqrt(width), P = softmax(S), P' = dropout(P), O = P' V: dV =
 * P'^T dO, dP = dropout(dO V^T), dS = P (dP - D), D = the row's sum of dO O, dQ
 * = dS K / sqrt(width), dK = dS^T Q / sqrt(width).
 *
 * No array grows with the square of the sequence length.  For each row, forward
 * stores L, the log-sum-exp of its scores; backward recomputes P = exp(S - L),
 * as in FlashAttention (Dao et al. 2022, 2023), and regenerates the dropout
 * mask.
 *
 * There are three kernels.  Each warp owns 16 rows of one span, for one head,
 * and iterates over the span's rows in shared memory:
 *
 *   kernel       owned   iterated   output
 *   forward      Q       K, V       O, L
 *   queries      Q, dO   K, V       dQ, D
 *   keys         K, V    Q, dO      dK, dV
 *
 * If several heads of queries share a head of keys (Ainslie et al. 2023), the
 * owner of its rows in `keys` iterates over one head after another.
 *
 * No thread adds to another thread's output, and each sum adds the span's rows
 * in order, so results depend neither on the order of blocks nor on the
 * position of a span in the batch.  The kernels compute nine matrix products,
 * two more than if backward accumulated dQ atomically.
 *
 * A causal mask or a window limits the rows that an owned row meets.  A block
 * loads only chunks that one of its rows meets, if the span is more than one
 * chunk, and a warp processes only steps of 32 rows (16 in bfloat16's `keys`)
 * that one of its rows meets.  Masks and shared keys are a template argument.
 * Kernels with them have no dropout; the others, such as BERT's, have no code
 * for masks.
 *
 * Each kernel has two implementations: one for bfloat16 on tensor cores
 * (attention_mma.h), and one for float or double without tensor cores
 * (attention_kernel.h), which is the reference and is described below.
 *
 * A block uses this amount of shared memory, in bytes, where r is the size of a
 * real and w the width of a head, rounded up to 32, 64 or 128:
 *
 *   per iterated row       2 (w r + 16), plus 2 r + 8 in `keys`
 *   per warp, forward      16 (w r + 16) + 16 * 36 r
 *   per warp, backward     2 * 16 (w r + 16) + 16 * 36 r
 *
 * If all rows of a group's longest span fit in the shared memory of a block of
 * 8 warps, or of 4 warps, they are loaded once.  Otherwise, and for spans of
 * more than 512 rows, they are loaded in chunks of 64, and a block computes a
 * single tile: the rows that its warps own.
 *
 * For a span of n rows, both implementations read and write the following
 * numbers of bytes in global memory, where h is n times the width times the
 * size of a value, and t is 1 if the rows are loaded once, otherwise n divided
 * by the rows of a tile (64 in bfloat16), rounded up:
 *
 *   forward   reads (1 + 2 t) h, writes h + n r
 *   queries   reads (3 + 2 t) h + 2 n r, writes h + n r
 *   keys      reads (2 + 2 t) h + 2 t n r, writes 2 h
 *
 * This is for each head of queries or, in `keys`, of keys.  If s heads of
 * queries share keys, `keys` reads 2 h + 2 s t (h + n r), and loads rows once
 * for each tile.  With masks, the rows of chunks that are not loaded do not
 * count.
 *
 * Blocks that share rows are adjacent in the grid, so all but the first find
 * these rows in the L2 cache.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_ATTENTION_H
#define TR_CUDA_ATTENTION_H

#include "cuda/device.h"

static constexpr unsigned TILE = 16; /* rows that a warp owns */
static constexpr unsigned STEP = 32; /* rows per iteration */
static constexpr unsigned MOST_WARPS = 8; /* per block */

/* Launch parameters of a kernel for one group. */
struct tr_attention_shape {
    uint32_t warps;
    uint32_t chunk; /* iterated rows in shared memory, a multiple of 32 */
    uint32_t tiles; /* blocks per head of a span */
    size_t shared;  /* shared memory, in bytes */
};

/* `row`, `warp`: bytes of shared memory per iterated row and per warp. */
struct tr_attention_shape tr_attention_shape_of(size_t limit,
                                                uint32_t longest,
                                                size_t row, size_t warp);

/* True if attention is neither causal nor windowed, and each head of queries
 * has its own keys. */
static inline bool attends_plainly(const tr_attend *a)
{
    return a->kv_heads == a->heads && !a->causal && a->window == 0;
}

/* True for the kernels without masks, the only ones with dropout. */
static inline bool keeps_dropout(const tr_attend *a)
{
    return attends_plainly(a) && a->dropout.scale > 0;
}

/* Implementations: bfloat16 on tensor cores, and `real` without them. */
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
 * The operations of ops.h.  Sizes are SIZE_MAX if a head is wider than 128.
 * `dense` is ignored because it does not change the result.
 */
size_t tr_cuda_attention_kept(tr_device *d, const tr_attend *a);
size_t tr_cuda_attention_scratch(tr_device *d, const tr_attend *a);
void tr_cuda_attention_forward(tr_device *d, const tr_attend *a,
                               const void *qkv, void *out);
void tr_cuda_attention_backward(tr_device *d, const tr_attend *a,
                                const void *qkv, const void *out,
                                const void *d_out, void *d_qkv);

#ifdef __cplusplus
}
#endif

#endif /* TR_CUDA_ATTENTION_H */
