/*
 * pass.h - the context of a forward pass and its backward pass.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_PASS_H
#define BERT_PASS_H

#include "model/bert/activations.h"
#include "model/bert/params.h"

typedef struct bert_pass {
    tr_device *device;
    const tr_ops *ops; /* device->ops */
    const bert_params *params;
    const bert_config *config;
    const tr_batch *batch; /* as staged */
    bert_attention attention;
    tr_dropout dropout;
    bert_activations *activations;
} bert_pass;

#endif /* BERT_PASS_H */
