/*
 * model_parts.h - what a model is made of, for itself and for tests.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_MODEL_PARTS_H
#define BERT_MODEL_PARTS_H

#include "activations.h"
#include "model.h"
#include "params.h"

struct bert_model {
    bert_config config;
    bert_params params;
    bert_activations activations;
    bool poison; /* tests: activations are NaN before they are computed */
};

#endif /* BERT_MODEL_PARTS_H */
