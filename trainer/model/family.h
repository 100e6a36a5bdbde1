/*
 * family.h - what a family of models implements, and the context of a pass.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_MODEL_FAMILY_H
#define TR_MODEL_FAMILY_H

#include "model/carve.h"
#include "model/model.h"
#include "model/params.h"

/* A forward pass and its backward pass. */
typedef struct tr_pass {
    tr_device *device;
    const tr_ops *ops; /* device->ops */
    const tr_params *params;
    const tr_config *config;
    const tr_batch *batch; /* as staged */
    tr_attention attention;
    bool evaluate; /* no backward pass follows */
    bool recompute; /* see tr_step */
    tr_dropout dropout;
    void *kept;    /* the family's activations */
    tr_watch watch;
} tr_pass;

/* Forward must call it for each bucket, before the bucket's weights are
 * read. */
static inline void tr_pass_needs(const tr_pass *pass, size_t bucket)
{
    if (pass->watch.needed)
        pass->watch.needed(pass->watch.context, bucket);
}

/* Backward must call it for each bucket, after its gradients are complete. */
static inline void tr_pass_done(const tr_pass *pass, size_t bucket)
{
    if (pass->watch.done)
        pass->watch.done(pass->watch.context, bucket);
}

/* Results of a forward pass on the device, for tests. */
typedef struct tr_outputs {
    const void *hidden; /* n_rows x hidden values: input of the heads */
    const double *mlm;  /* [n_mlm] unweighted losses */
    const double *nsp;  /* [n_seq], or NULL */
    const int32_t *right; /* [n_mlm] 1 for targets whose label has the highest
                           * logit; NULL unless evaluating */
} tr_outputs;

typedef struct tr_family_ops {
    /* Lists the tensors.  Returns false if out of memory or if the config is
     * invalid. */
    bool (*list)(tr_params *params, const tr_config *config);

    /* Allocates the activations' table.  Returns NULL if out of memory. */
    void *(*open)(tr_device *device, const tr_config *config);
    void (*close)(tr_device *device, void *kept);

    /* Lays out activations for an unstaged batch. */
    void (*lay_out)(void *kept, tr_carve *carve, tr_device *device,
                    const tr_config *config, const tr_batch *batch,
                    const tr_step *step);
    void (*forward)(const tr_pass *pass);
    void (*backward)(const tr_pass *pass);
    tr_outputs (*outputs)(const tr_pass *pass);
} tr_family_ops;

extern const tr_family_ops tr_bert_family;
extern const tr_family_ops tr_prenorm_family;

#endif /* TR_MODEL_FAMILY_H */
