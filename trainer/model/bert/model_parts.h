/*
 * model_parts.h - the members of a model, for model.c and tests.
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
    bert_graph_mode graph_mode;
    tr_unpad unpad;
    tr_bucket_pad bucket_pad;
    bert_activations activations;
    bert_pass pass; /* context of the last forward */
    bert_watch watch;
    bool poison;    /* for tests: set activations to NaN before a pass */
};

#endif /* BERT_MODEL_PARTS_H */
