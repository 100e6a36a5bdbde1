/*
 * shards.h - the part of each bucket that a rank updates.
 *
 * A bucket is cut into equal shards, one for each rank, as NCCL's
 * reduce-scatter and all-gather need them.  The size is rounded up, so the last
 * ranks' shards can be shorter or empty.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_RANKS_SHARDS_H
#define TR_RANKS_SHARDS_H

#include <stdint.h>

#include "model/ops.h"

#define TR_SHARD_ROUND 8 /* 16 bytes of bfloat16 */

/* Size of a rank's shard of a bucket of `count` numbers, including padding. */
static inline size_t tr_shard_size(size_t count, uint32_t ranks)
{
    const size_t each = count / ranks + (count % ranks != 0);

    return (each + TR_SHARD_ROUND - 1) / TR_SHARD_ROUND * TR_SHARD_ROUND;
}

/* A rank's shard, without padding. */
static inline tr_range tr_shard_of(tr_range bucket, uint32_t rank,
                                   uint32_t ranks)
{
    const size_t size = tr_shard_size(bucket.count, ranks);
    const size_t first = rank * size < bucket.count ? rank * size
                                                    : bucket.count;
    const size_t left = bucket.count - first;
    const tr_range range = {bucket.first + first, left < size ? left : size};

    return range;
}

#endif /* TR_RANKS_SHARDS_H */
