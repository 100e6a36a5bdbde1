/*
 * pass.h - what all of a forward and its backward have in common.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_PASS_H
#define BERT_PASS_H

#include "model/bert/activations.h"
#include "model/bert/params.h"

typedef struct bert_pass {
    bert_device *device;
    const bert_ops *ops; /* the device's */
    const bert_params *params;
    const bert_config *config;
    const bert_batch *batch; /* as staged */
    bert_attention attention;
    bert_dropout dropout;
    bert_activations *activations;
} bert_pass;

#endif /* BERT_PASS_H */
