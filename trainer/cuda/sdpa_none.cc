/*
 * sdpa_none.cc - stubs for a build without cuDNN.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include "cuda/open.h"

const bool tr_cudnn_is_built = false;

bool tr_cuda_use_cudnn(tr_device *, size_t, size_t, double, char *why,
                       size_t size)
{
    snprintf(why, size, "this build has no cuDNN");
    return false;
}
