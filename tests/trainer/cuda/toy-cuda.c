/*
 * toy-cuda.c - the CUDA back end as the device of tests in C.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include "cuda/open.h"

bert_device *cuda_open(void);

bert_device *cuda_open(void)
{
    char why[200] = "";
    bert_device *const d = bert_cuda_open(0, BERT_FLOAT, why, sizeof why);

    if (d == NULL)
        fprintf(stderr, "%s\n", why);
    return d;
}
