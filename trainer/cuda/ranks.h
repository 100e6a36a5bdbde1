/*
 * ranks.h - gradients summed over ranks: by the host, or by NCCL.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_CUDA_RANKS_H
#define BERT_CUDA_RANKS_H

#include "cuda/device.h"
#include "ranks/workers.h"

/* Whether nccl.cc was built, or nccl_none.cc in its place. */
extern const bool bert_nccl_is_built;

/* bert_cuda_join() where each rank has a GPU of its own. */
bool bert_nccl_join(bert_cuda *c, const workers *w);

#endif /* BERT_CUDA_RANKS_H */
