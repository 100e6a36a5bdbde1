/*
 * stage.h - batches on their way to the device.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_STAGE_H
#define TR_CUDA_STAGE_H

#include "cuda/device.h"

/* False: it failed, as tr_cuda_good() has kept. */
bool tr_stages_open(tr_cuda *c);
void tr_stages_close(tr_cuda *c);

/* The staged batch that has this array in its copy; NULL: none. */
const tr_staged *tr_cuda_holder(const tr_cuda *c, const void *array);

#endif /* TR_CUDA_STAGE_H */
