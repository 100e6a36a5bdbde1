/*
 * attention_tiles.h - attention that keeps no scores.
 *
 * It takes causal masks, windows, and heads of keys that several heads of
 * queries share, but no dropout.  Memory does not grow with the square of a
 * sequence's length, and tiles that are masked altogether are skipped.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CPU_ATTENTION_TILES_H
#define TR_CPU_ATTENTION_TILES_H

#include "model/ops.h"

/* Size of `kept`, in bytes: the log-sum-exp of each row and head. */
size_t tr_tiles_kept(const tr_attend *a);

/* Size of a thread's scratch, in bytes; a multiple of a cache line. */
size_t tr_tiles_scratch(const tr_attend *a);

/*
 * Attention of one span and one head of keys, with all heads of queries that
 * use it.  Pieces write to disjoint memory.
 */
void tr_tiles_forward(const tr_attend *a, size_t span, size_t kv_head,
                      const real *qkv, real *out, void *scratch);
void tr_tiles_backward(const tr_attend *a, size_t span, size_t kv_head,
                       const real *qkv, const real *out, const real *d_out,
                       real *d_qkv, void *scratch);

#endif /* TR_CPU_ATTENTION_TILES_H */
