/*
 * groups.cc - spans sorted into groups of like length.
 *
 * SPDX-License-Identifier: MIT
 */
#include "groups.h"

#include <algorithm>

void bert_cuda_group(const bert_batch *batch, int32_t *list,
                     struct bert_group *group)
{
    const auto length = [batch](int32_t span) {
        return batch->cu[span + 1] - batch->cu[span];
    };
    int32_t *end = list;
    const int32_t *at = list;

    for (uint32_t i = 0; i < batch->n_spans; i++)
        if (length((int32_t)i) > 0)
            *end++ = (int32_t)i;
    std::stable_sort(list, end, [length](int32_t a, int32_t b) {
        return length(a) > length(b);
    });
    for (unsigned g = BERT_GROUPS; g-- > 0;) {
        group[g] = {at, 0, at < end ? (uint32_t)length(*at) : 0};
        while (at < end && length(*at) > (int32_t)(g * BERT_GROUP_ROWS))
            at++;
        group[g].count = (uint32_t)(at - group[g].span);
        if (group[g].count == 0)
            group[g].longest = 0;
    }
}
