/*
 * nccl_none.cc - what a build without NCCL has in its place.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cuda/ranks.h"

const bool bert_nccl_is_built = false;

bool bert_nccl_join(bert_cuda *c, const workers *)
{
    return !c->failed;
}
