/*
 * model_parts.h - the members of a model, for model.c and tests.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_MODEL_MODEL_PARTS_H
#define TR_MODEL_MODEL_PARTS_H

#include "model/bucket_pad.h"
#include "model/family.h"
#include "model/micro_batch.h"

struct tr_model {
    tr_device *device;
    tr_config config;
    const tr_family_ops *family;
    tr_params params;
    tr_graph_mode graph_mode;
    tr_micro_batch micro_batch;
    tr_unpad unpad;
    tr_bucket_pad bucket_pad;
    void *kept; /* the family's activations, in `block` */
    tr_block_room block;
    size_t used;    /* bytes of the block, in the last pass */
    size_t scratch; /* start of scratch in the block */
    tr_pass pass; /* context of the last forward */
    tr_watch watch;
    bool poison;    /* for tests: set activations to NaN before a pass */
};

#endif /* TR_MODEL_MODEL_PARTS_H */
