/*
 * none.c - what a build without the CUDA back end has in its place.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include "cuda/open.h"

bert_device *bert_cuda_open(unsigned nth, bert_precision precision, char *why,
                            size_t size)
{
    (void)nth;
    (void)precision;
    (void)snprintf(why, size, "this build has no CUDA back end");
    return NULL;
}

const bool bert_cudnn_is_built = false;

bool bert_cuda_use_cudnn(bert_device *d, const bert_config *config, char *why,
                         size_t size)
{
    (void)d;
    (void)config;
    (void)snprintf(why, size, "this build has no CUDA back end");
    return false;
}

bool bert_cuda_join(bert_device *d, const struct workers *w,
                    real *gradients, size_t n_gradients, size_t n_sums)
{
    (void)d;
    (void)w;
    (void)gradients;
    (void)n_gradients;
    (void)n_sums;
    return false;
}
