/*
 * ranks.h - sum gradients over ranks, through the host or by NCCL.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_RANKS_H
#define TR_CUDA_RANKS_H

#include "cuda/device.h"
#include "ranks/workers.h"

/* True if this build has NCCL. */
extern const bool tr_nccl_is_built;

/* Implements tr_cuda_join() if each rank has its own GPU. */
bool tr_nccl_join(tr_cuda *c, const tr_workers *w, const real *gradients,
                  const tr_range *buckets, size_t n_buckets);

#endif /* TR_CUDA_RANKS_H */
