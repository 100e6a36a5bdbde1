/*
 * far.h - a device whose memory the host does not see.
 *
 * It computes as processors do, but says nothing of being on the host: so
 * arenas have mirrors, batches are copied, and nobody may count on a step
 * being done before finish().
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_BERT_FAR_H
#define TESTS_BERT_FAR_H

#include "model/ops.h"

tr_device *far_open(void);

#endif /* TESTS_BERT_FAR_H */
