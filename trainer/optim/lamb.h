/*
 * lamb.h - the optimiser: layer-wise steps for large batches.
 *
 * You et al., "Large Batch Optimization for Deep Learning: Training BERT in
 * 76 minutes" (2019), algorithm 2, with bias correction, and the gradient's
 * norm over all weights cut first.  Krell et al. (2021), section 3.4: where a
 * step sees p times the sequences because they are packed, both decays are
 * taken to the power of p.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_LAMB_H
#define BERT_LAMB_H

#include "model/ops.h"

typedef struct lamb_options {
    double beta1;   /* of the mean of gradients */
    double beta2;   /* of the mean of their squares */
    double epsilon;
    double decay;   /* of weights */
    double clip;    /* the longest gradient; 0: any */
} lamb_options;

/* What the moments hold of their beginning is the product of all betas. */
typedef struct lamb_state {
    double product1;
    double product2;
} lamb_state;

typedef struct lamb lamb;

/* Moments of 0 for so many numbers; parts are copied.  NULL: no memory. */
lamb *lamb_open(bert_device *device, const lamb_options *options,
                size_t numbers, const bert_part *parts, size_t n_parts);
void lamb_free(lamb *l);

/*
 * Asks for a step at learning rate `rate`, with betas to the power of
 * `factor`; weights and gradients are the device's.  Whether they were
 * changed is what the device's finish() tells; if not, the state before has
 * to be set again.
 */
void lamb_step(lamb *l, real *weights, const real *gradients, double rate,
               double factor);

/*
 * What a checkpoint has to hold; the moments are `numbers` each.  They are
 * the host's view, as of the last lamb_fetch; lamb_store takes what was
 * written there.  Both do nothing where the device is on the host.
 */
real *lamb_mean(lamb *l);
real *lamb_square(lamb *l);
void lamb_fetch(lamb *l);
void lamb_store(lamb *l);
lamb_state lamb_get(const lamb *l);
void lamb_set(lamb *l, lamb_state state);

#endif /* BERT_LAMB_H */
