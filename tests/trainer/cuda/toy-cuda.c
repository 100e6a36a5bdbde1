/*
 * toy-cuda.c - the CUDA back end as the device of tests in C.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include "cuda/open.h"

tr_device *cuda_open(void);

tr_device *cuda_open(void)
{
    char why[200] = "";
    tr_device *const d = tr_cuda_open(0, TR_FLOAT, why, sizeof why);

    if (d == NULL)
        fprintf(stderr, "%s\n", why);
    return d;
}
