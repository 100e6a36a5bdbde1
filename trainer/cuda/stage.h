/*
 * stage.h - batches on their way to the device.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_CUDA_STAGE_H
#define BERT_CUDA_STAGE_H

#include "cuda/device.h"

/* False: it failed, as bert_cuda_good() has kept. */
bool bert_stages_open(bert_cuda *c);
void bert_stages_close(bert_cuda *c);

/* The staged batch that has this array in its copy; NULL: none. */
const bert_staged *bert_cuda_holder(const bert_cuda *c, const void *array);

#endif /* BERT_CUDA_STAGE_H */
