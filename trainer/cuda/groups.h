/*
 * groups.h - spans sorted into groups of like length.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_GROUPS_H
#define TR_CUDA_GROUPS_H

#include "cuda/device.h"

/* Of a rounded batch groups have a multiple of so many spans. */
#define TR_GROUP_ROUND 32

/* Room for all groups. */
static inline size_t tr_groups_max(uint32_t spans)
{
    return (size_t)spans + TR_GROUPS * TR_GROUP_ROUND;
}

/*
 * Fills group[TR_GROUPS].  Spans of a group lie side by side in `list`,
 * which has tr_groups_max(batch->n_spans) places, long ones first and those
 * of one length in the order of the batch; spans without rows are left out.
 * group[].span points into `list`: whoever copies that to the device moves
 * them along.
 *
 * Where the batch is rounded, so are groups that are not empty, by span
 * batch->n_spans + 1, which has no rows; `longest` is that of any such one.
 */
void tr_cuda_group(const tr_batch *batch, int32_t *list,
                   struct tr_group *group);

#endif /* TR_CUDA_GROUPS_H */
