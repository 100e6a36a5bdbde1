/*
 * sdpa_none.cc - what a build without cuDNN has in its place.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include "cuda/open.h"

const bool bert_cudnn_is_built = false;

bool bert_cuda_use_cudnn(bert_device *, const bert_config *, char *why,
                         size_t size)
{
    snprintf(why, size, "this build has no cuDNN");
    return false;
}
