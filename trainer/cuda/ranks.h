/*
 * ranks.h - gradients summed over ranks: by the host, or by NCCL.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_RANKS_H
#define TR_CUDA_RANKS_H

#include "cuda/device.h"
#include "ranks/workers.h"

/* Whether nccl.cc was built, or nccl_none.cc in its place. */
extern const bool tr_nccl_is_built;

/* tr_cuda_join() where each rank has a GPU of its own. */
bool tr_nccl_join(tr_cuda *c, const tr_workers *w);

#endif /* TR_CUDA_RANKS_H */
