/*
 * spans.cc - bucket sizes and offsets of spans for cuDNN (sdpa.h).
 *
 * SPDX-License-Identifier: MIT
 */
#include "cuda/sdpa.h"

#include <algorithm>

#define FEWEST_SPANS 32
#define STEP_OF_SPANS 512

static uint32_t bucket_of_spans(uint32_t n)
{
    uint32_t bucket = FEWEST_SPANS;

    while (bucket < n && bucket < STEP_OF_SPANS)
        bucket *= 2;
    return bucket >= n ? bucket
                       : (n + STEP_OF_SPANS - 1) / STEP_OF_SPANS
                             * STEP_OF_SPANS;
}

static uint32_t bucket_of_rows(uint32_t longest)
{
    const uint32_t each = TR_GROUP_ROWS, most = (TR_GROUPS - 1) * each;
    uint32_t bucket = most;

    if (longest <= most)
        return std::max((longest + each - 1) / each, 1u) * each;
    while (bucket < longest)
        bucket *= 2;
    return bucket;
}

void tr_spans_count(const tr_batch *batch, tr_spans *spans)
{
    int32_t longest = 0;

    for (uint32_t i = 0; i < batch->n_spans; i++)
        longest = std::max(longest, batch->cu[i + 1] - batch->cu[i]);
    spans->count = bucket_of_spans(batch->n_spans);
    spans->longest = bucket_of_rows((uint32_t)longest);
    spans->place = batch->place && batch->n_rows ? batch->place[0] : 0;
}

void tr_spans_fill(const tr_batch *batch, const tr_spans *spans,
                   size_t hidden, int32_t *in, int32_t *out,
                   int32_t *length)
{
    for (uint32_t i = 0; i <= spans->count; i++) {
        const int32_t first = batch->cu[std::min(i, batch->n_spans)];

        out[i] = first * (int32_t)hidden;
        in[i] = 3 * out[i];
        if (i < spans->count)
            length[i] = i < batch->n_spans ? batch->cu[i + 1] - first : 0;
    }
}
