/*
 * attention.cu - memory sizes and dispatch of attention (attention.h).
 *
 * SPDX-License-Identifier: MIT
 */
#include "cuda/attention.h"

#include "model/sizes.h"

#include <algorithm>

struct tr_attention_shape tr_attention_shape_of(size_t limit,
                                                uint32_t longest,
                                                size_t row, size_t warp)
{
    const uint32_t all = (longest + STEP - 1) / STEP * STEP;
    const uint32_t warps = std::min((longest + TILE - 1) / TILE, MOST_WARPS);

    for (uint32_t w = warps; longest <= (TR_GROUPS - 1) * TR_GROUP_ROWS;
         w = MOST_WARPS / 2) {
        if (all * row + w * warp <= limit)
            return {w, all, 1, all * row + w * warp};
        if (w <= MOST_WARPS / 2)
            break;
    }

    tr_attention_shape s = {warps, 2 * STEP, 0, 0};

    while (s.chunk * row + s.warps * warp > limit && s.chunk > STEP) {
        if (s.warps > 1)
            s.warps /= 2;
        else
            s.chunk = STEP;
    }
    s.tiles = (longest + s.warps * TILE - 1) / (s.warps * TILE);
    s.shared = s.chunk * row + s.warps * warp;
    return s;
}

/* Bytes in an array of one real per row and head; SIZE_MAX if too large. */
static size_t real_a_row(const tr_attend *a)
{
    const tr_batch *const batch = a->batch;
    const size_t tiles = batch->max_span / TILE + 1; /* upper limit */

    if (a->width > TR_CUDA_HEAD_MAX
        || tr_times(batch->n_spans, tr_times(a->heads, tiles))
               > INT32_MAX /* blocks in a grid */)
        return SIZE_MAX;
    return tr_times(sizeof(real), tr_times(batch->n_rows, a->heads));
}

size_t tr_cuda_attention_kept(tr_device *, const tr_attend *a)
{
    return real_a_row(a);
}

void tr_cuda_attention_forward(tr_device *d, const tr_attend *a,
                               const void *qkv, void *out)
{
    tr_cuda *const c = cuda_of(d);

    tr_cuda_takes(c, keeps_dropout(a) || a->dropout.threshold == 0,
                  "attention");
#ifndef TR_DOUBLE
    if (c->bf16) {
        attention_forward_mma(c, a, qkv, out);
        return;
    }
#endif
    attention_forward_plain(c, a, qkv, out);
}

void tr_cuda_attention_backward(tr_device *d, const tr_attend *a,
                                const void *qkv, const void *out,
                                const void *d_out, void *d_qkv)
{
    tr_cuda *const c = cuda_of(d);

    tr_cuda_takes(c, keeps_dropout(a) || a->dropout.threshold == 0,
                  "attention");
#ifndef TR_DOUBLE
    if (c->bf16) {
        attention_backward_mma(c, a, qkv, out, d_out, d_qkv);
        return;
    }
#endif
    attention_backward_plain(c, a, qkv, out, d_out, d_qkv);
}

size_t tr_cuda_attention_scratch(tr_device *, const tr_attend *a)
{
    return real_a_row(a);
}
