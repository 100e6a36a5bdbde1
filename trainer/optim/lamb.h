/*
 * lamb.h - the LAMB optimiser: layer-wise adaptive steps for large batches.
 *
 * The method is algorithm 2 of You et al., "Large Batch Optimization for Deep
 * Learning: Training BERT in 76 minutes" (2019), with bias correction.  The
 * gradient is first clipped by its global norm.  If packing puts p times as
 * many sequences into a step, both betas are raised to the power of p, as in
 * Krell et al. (2021), section 3.4.
 *
 * Without trust ratios, the method is AdamW (Loshchilov and Hutter, "Decoupled
 * Weight Decay Regularization", 2017).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_OPTIM_LAMB_H
#define TR_OPTIM_LAMB_H

#include "model/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tr_lamb_options {
    bool trust;     /* scale updates by trust ratios; without, a step is AdamW's
                     * (Loshchilov and Hutter, 2017) */
    double beta1;   /* decay of the mean of gradients */
    double beta2;   /* decay of the mean of squared gradients */
    double epsilon;
    double decay;   /* weight decay */
    double clip;    /* maximum norm of the gradient; 0: no limit */
} tr_lamb_options;

/* Products of the betas of all steps so far, for bias correction. */
typedef struct tr_lamb_state {
    double product1;
    double product2;
} tr_lamb_state;

typedef struct tr_lamb tr_lamb;

/* Moments start at 0.  `parts` is copied.  Returns NULL if out of memory. */
tr_lamb *tr_lamb_open(tr_device *device, const tr_lamb_options *options,
                      size_t numbers, const tr_part *parts, size_t n_parts);
void tr_lamb_free(tr_lamb *l);

/*
 * Queues a step at learning rate `rate`, with betas raised to the power of
 * `factor`.  Weights and gradients are device arrays.  The device's finish()
 * reports whether the step changed the weights; if not, the caller must restore
 * the state from before the step.
 */
void tr_lamb_step(tr_lamb *l, real *weights, const real *gradients, double rate,
                  double factor);

/*
 * The state for a checkpoint.  The moments are host copies of `numbers` numbers
 * each: tr_lamb_fetch copies them from the device, and tr_lamb_store copies
 * them to the device.  Neither does anything if the device is the host.  If the
 * device has shards, both copy only these.
 */
real *tr_lamb_mean(tr_lamb *l);
real *tr_lamb_square(tr_lamb *l);
void tr_lamb_fetch(tr_lamb *l);
void tr_lamb_store(tr_lamb *l);
tr_lamb_state tr_lamb_get(const tr_lamb *l);
void tr_lamb_set(tr_lamb *l, tr_lamb_state state);

#ifdef __cplusplus
}
#endif

#endif /* TR_OPTIM_LAMB_H */
