/*
 * heads.h - the training objectives: masked tokens and next sentence.
 *
 * Both gather only the rows of the encoder's output that they need, so packing
 * does not make them more expensive.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_HEADS_H
#define BERT_HEADS_H

#include "model/bert/activations.h"
#include "model/bert/params.h"

/*
 * `hidden` is the encoder's output.  The activations receive one unweighted
 * loss per row; the device's finish() reports the weighted sums.
 */
void bert_mlm_forward(const tr_pass *pass, const void *hidden);
void bert_nsp_forward(const tr_pass *pass, const void *hidden);

/*
 * Both add to the gradient of the encoder's output and overwrite activations.
 */
void bert_mlm_backward(const tr_pass *pass, void *d_hidden);
void bert_nsp_backward(const tr_pass *pass, void *d_hidden);

#endif /* BERT_HEADS_H */
