/*
 * groups.cc - group spans by length.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cuda/groups.h"

#include <algorithm>

#include "model/bucket_pad.h"

/* Rounds up the groups, which move towards the end of `list`. */
static void round_up(const tr_batch *batch, int32_t *list,
                     struct tr_group *group)
{
    const int32_t empty = (int32_t)batch->n_spans + 1;
    uint32_t at = 0, moved = 0;

    for (unsigned g = 0; g < TR_GROUPS; g++)
        moved += tr_round_up(group[g].count, TR_GROUP_ROUND);
    for (unsigned g = 0; g < TR_GROUPS; g++) {
        const uint32_t n = group[g].count;
        const uint32_t all = tr_round_up(n, TR_GROUP_ROUND);

        at = (uint32_t)(group[g].span - list);
        moved -= all;
        std::copy_backward(list + at, list + at + n, list + moved + n);
        std::fill(list + moved + n, list + moved + all, empty);
        group[g].span = list + moved;
        group[g].count = all;
        group[g].longest = tr_round_up(
            group[g].longest, g < TR_GROUPS - 1
                                  ? TR_GROUP_ROWS
                                  : (TR_GROUPS - 1) * TR_GROUP_ROWS);
    }
}

void tr_cuda_group(const tr_batch *batch, int32_t *list, struct tr_group *group)
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
    for (unsigned g = TR_GROUPS; g-- > 0;) {
        group[g] = {at, 0, at < end ? (uint32_t)length(*at) : 0};
        while (at < end && length(*at) > (int32_t)(g * TR_GROUP_ROWS))
            at++;
        group[g].count = (uint32_t)(at - group[g].span);
        if (group[g].count == 0)
            group[g].longest = 0;
    }
    if (batch->rounded)
        round_up(batch, list, group);
}
