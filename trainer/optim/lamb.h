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
#ifndef TR_OPTIM_LAMB_H
#define TR_OPTIM_LAMB_H

#include "model/ops.h"

typedef struct tr_lamb_options {
    double beta1;   /* of the mean of gradients */
    double beta2;   /* of the mean of their squares */
    double epsilon;
    double decay;   /* of weights */
    double clip;    /* the longest gradient; 0: any */
} tr_lamb_options;

/* What the moments hold of their beginning is the product of all betas. */
typedef struct tr_lamb_state {
    double product1;
    double product2;
} tr_lamb_state;

typedef struct tr_lamb tr_lamb;

/* Moments of 0 for so many numbers; parts are copied.  NULL: no memory. */
tr_lamb *tr_lamb_open(tr_device *device, const tr_lamb_options *options,
                      size_t numbers, const tr_part *parts, size_t n_parts);
void tr_lamb_free(tr_lamb *l);

/*
 * Asks for a step at learning rate `rate`, with betas to the power of
 * `factor`; weights and gradients are the device's.  Whether they were
 * changed is what the device's finish() tells; if not, the state before has
 * to be set again.
 */
void tr_lamb_step(tr_lamb *l, real *weights, const real *gradients, double rate,
                  double factor);

/*
 * What a checkpoint has to hold; the moments are `numbers` each.  They are
 * the host's view, as of the last tr_lamb_fetch; tr_lamb_store takes what was
 * written there.  Both do nothing where the device is on the host.
 */
real *tr_lamb_mean(tr_lamb *l);
real *tr_lamb_square(tr_lamb *l);
void tr_lamb_fetch(tr_lamb *l);
void tr_lamb_store(tr_lamb *l);
tr_lamb_state tr_lamb_get(const tr_lamb *l);
void tr_lamb_set(tr_lamb *l, tr_lamb_state state);

#endif /* TR_OPTIM_LAMB_H */
