/*
 * attention.cu - what attention takes of memory, see attention.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "attention.h"

#include "sizes.h"

#include <algorithm>

struct bert_attention_shape bert_attention_shape_of(size_t limit,
                                                    uint32_t longest,
                                                    size_t row, size_t warp)
{
    const uint32_t all = (longest + 31) / 32 * 32;
    const uint32_t warps = std::min((longest + 15) / 16, 8u);

    for (uint32_t w = warps; longest <= 512; w = 4) {
        if (all * row + w * warp <= limit)
            return {w, all, 1, all * row + w * warp};
        if (w <= 4)
            break;
    }

    bert_attention_shape s = {warps, 64, 0, 0};

    while (s.chunk * row + s.warps * warp > limit && s.chunk > 32) {
        if (s.warps > 1)
            s.warps /= 2;
        else
            s.chunk = 32;
    }
    s.tiles = (longest + s.warps * 16 - 1) / (s.warps * 16);
    s.shared = s.chunk * row + s.warps * warp;
    return s;
}

/* A real a row and head. */
static size_t real_a_row(const bert_batch *batch, size_t hidden, size_t heads)
{
    if (hidden / heads > BERT_CUDA_HEAD_MAX
        || bert_times(batch->n_spans, heads) > INT32_MAX /* blocks */)
        return SIZE_MAX;
    return bert_times(sizeof(real), bert_times(batch->n_rows, heads));
}

size_t bert_cuda_attention_kept(bert_device *, const bert_batch *batch,
                                size_t hidden, size_t heads, bool)
{
    return real_a_row(batch, hidden, heads);
}

size_t bert_cuda_attention_scratch(bert_device *, const bert_batch *batch,
                                   size_t hidden, size_t heads, bool)
{
    return real_a_row(batch, hidden, heads);
}
