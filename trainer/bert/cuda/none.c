/*
 * none.c - what a build without the CUDA back end has in its place.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include "open.h"

bert_device *bert_cuda_open(unsigned nth, bert_precision precision, char *why,
                            size_t size)
{
    (void)nth;
    (void)precision;
    (void)snprintf(why, size, "this build has no CUDA back end");
    return NULL;
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
