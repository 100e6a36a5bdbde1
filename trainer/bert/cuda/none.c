/*
 * none.c - what a build without the CUDA back end has in its place.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include "open.h"

bert_device *bert_cuda_open(bert_precision precision, char *why, size_t size)
{
    (void)precision;
    (void)snprintf(why, size, "this build has no CUDA back end");
    return NULL;
}
