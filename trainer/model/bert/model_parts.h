/*
 * model_parts.h - what a model is made of, for itself and for tests.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_MODEL_PARTS_H
#define BERT_MODEL_PARTS_H

#include "model/bert/model.h"
#include "model/bert/pass.h"
#include "model/bucket_pad.h"

struct bert_model {
    tr_device *device;
    bert_config config;
    bert_params params;
    bert_graph_mode repeat;
    tr_unpad strip;
    tr_bucket_pad round;
    bert_activations activations;
    bert_pass pass; /* the last forward's */
    bert_bucket_done *done; /* NULL: nobody is told */
    void *context;
    bool poison;    /* tests: activations are NaN before they are computed */
};

#endif /* BERT_MODEL_PARTS_H */
