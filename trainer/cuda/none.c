/*
 * none.c - stubs for a build without the CUDA back end.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include "cuda/open.h"

tr_device *tr_cuda_open(unsigned nth, tr_precision precision, char *why,
                        size_t size)
{
    (void)nth;
    (void)precision;
    (void)snprintf(why, size, "this build has no CUDA back end");
    return NULL;
}

const bool tr_cudnn_is_built = false;

bool tr_cuda_use_cudnn(tr_device *d, size_t hidden, size_t heads,
                       double dropout, char *why, size_t size)
{
    (void)d;
    (void)hidden;
    (void)heads;
    (void)dropout;
    (void)snprintf(why, size, "this build has no CUDA back end");
    return false;
}

bool tr_cuda_join(tr_device *d, const struct tr_workers *w,
                  real *gradients, const tr_range *buckets, size_t n_buckets)
{
    (void)d;
    (void)w;
    (void)gradients;
    (void)buckets;
    (void)n_buckets;
    return false;
}
