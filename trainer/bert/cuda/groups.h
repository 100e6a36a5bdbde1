/*
 * groups.h - spans sorted into groups of like length.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_CUDA_GROUPS_H
#define BERT_CUDA_GROUPS_H

#include "device.h"

/*
 * Fills group[BERT_GROUPS].  Spans of a group lie side by side in `list`,
 * which has room for batch->n_spans, long ones first and those of one length
 * in the order of the batch; spans without rows are left out.  group[].span
 * points into `list`: whoever copies that to the device moves them along.
 */
void bert_cuda_group(const bert_batch *batch, int32_t *list,
                     struct bert_group *group);

#endif /* BERT_CUDA_GROUPS_H */
