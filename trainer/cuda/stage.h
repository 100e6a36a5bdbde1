/*
 * stage.h - copy batches to the device.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_STAGE_H
#define TR_CUDA_STAGE_H

#include "cuda/device.h"

/* False: failed, recorded by tr_cuda_good(). */
bool tr_stages_open(tr_cuda *c);
void tr_stages_close(tr_cuda *c);

/* The staged batch that contains this array; NULL: none. */
const tr_staged *tr_cuda_holder(const tr_cuda *c, const void *array);

#endif /* TR_CUDA_STAGE_H */
