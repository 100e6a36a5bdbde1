/*
 * far.h - a device whose memory the host cannot access.
 *
 * It computes on the CPU, but does not declare itself as the host.  So arenas
 * have mirrors, batches are copied, and a step may be pending until finish().
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_BERT_FAR_H
#define TESTS_BERT_FAR_H

#include "model/ops.h"

tr_device *far_open(void);

#endif /* TESTS_BERT_FAR_H */
