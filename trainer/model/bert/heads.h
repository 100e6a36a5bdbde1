/*
 * heads.h - what is trained on: masked tokens and next sentences.
 *
 * Both gather the rows that they need of the encoder's output, so that a pack
 * costs them no more than its sequences would by themselves.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_HEADS_H
#define BERT_HEADS_H

#include "model/bert/pass.h"

/*
 * hidden: the encoder's output.  The losses of their rows, not weighted, are
 * in the activations; finish() of the device tells their weighted sums.
 */
void bert_mlm_forward(const bert_pass *pass, const void *hidden);
void bert_nsp_forward(const bert_pass *pass, const void *hidden);

/*
 * Each adds to the gradient of the encoder's output; overwrites what was
 * kept.
 */
void bert_mlm_backward(const bert_pass *pass, void *d_hidden);
void bert_nsp_backward(const bert_pass *pass, void *d_hidden);

#endif /* BERT_HEADS_H */
