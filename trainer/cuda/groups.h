/*
 * groups.h - group spans by length.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_GROUPS_H
#define TR_CUDA_GROUPS_H

#include "cuda/device.h"

/* In a rounded batch, the size of a group is a multiple of this. */
#define TR_GROUP_ROUND 32

/* Maximum number of entries of all groups together. */
static inline size_t tr_groups_max(uint32_t spans)
{
    return (size_t)spans + TR_GROUPS * TR_GROUP_ROUND;
}

/*
 * Fills in group[TR_GROUPS] and `list`, which has room for
 * tr_groups_max(batch->n_spans) indices.  Each group is contiguous in the list,
 * with its longest spans first and spans of equal length in batch order.  Empty
 * spans are omitted.  group[].span points into `list` and must be adjusted when
 * the list is copied to the device.
 *
 * In a rounded batch, nonempty groups are extended to a multiple of
 * TR_GROUP_ROUND with span batch->n_spans + 1, which is empty, and `longest` is
 * rounded up to a multiple of TR_GROUP_ROWS (in the last group, of 512).
 */
void tr_cuda_group(const tr_batch *batch, int32_t *list,
                   struct tr_group *group);

#endif /* TR_CUDA_GROUPS_H */
