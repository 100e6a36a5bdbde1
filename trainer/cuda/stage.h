/*
 * stage.h - copy batches to the device.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_STAGE_H
#define TR_CUDA_STAGE_H

#include "cuda/device.h"

/* Returns false after a failure, which tr_cuda_good() has recorded. */
bool tr_stages_open(tr_cuda *c);
void tr_stages_close(tr_cuda *c);

/* Returns the staged batch that contains this array, or NULL. */
const tr_staged *tr_cuda_holder(const tr_cuda *c, const void *array);

#endif /* TR_CUDA_STAGE_H */
