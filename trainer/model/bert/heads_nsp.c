/*
 * heads_nsp.c - predict whether the second segment follows the first: dense and
 * tanh on a sequence's first row (the pooler), then two classes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model/bert/heads.h"

static tr_linear pooler_of(const tr_params *p)
{
    return tr_params_linear(p, bert_params_back(p, BERT_POOLER_WEIGHT),
                            bert_params_back(p, BERT_POOLER_BIAS), 1);
}

static tr_linear classes_of(const tr_pass *pass)
{
    const tr_params *const p = pass->params;
    tr_linear classes = tr_params_linear(
        p, bert_params_back(p, BERT_NSP_WEIGHT),
        bert_params_back(p, BERT_NSP_BIAS), 1);

    classes.stride = bert_kept(pass)->nsp.stride;
    return classes;
}

void bert_nsp_forward(const tr_pass *pass, const void *hidden)
{
    const tr_ops *const ops = pass->ops;
    tr_device *const d = pass->device;
    const tr_batch *const batch = pass->batch;
    const bert_nsp_kept *const k = &bert_kept(pass)->nsp;
    const tr_linear pooler = pooler_of(pass->params);
    const tr_linear classes = classes_of(pass);
    const size_t n = batch->n_seq;

    ops->gather_rows(d, n, pooler.in, batch->cls_row, hidden, k->in);
    ops->linear_forward(d, &pooler, n, k->in, true, k->pooled);
    ops->tanh_forward(d, n * pooler.out, k->pooled);
    ops->linear_forward(d, &classes, n, k->pooled, true, k->logits);
    ops->cross_entropy(d, TR_LOSS_NSP, n, classes.out, k->stride, k->logits,
                       batch->nsp_label, batch->nsp_weight, k->loss,
                       pass->params->adds);
}

void bert_nsp_backward(const tr_pass *pass, void *d_hidden)
{
    const tr_ops *const ops = pass->ops;
    tr_device *const d = pass->device;
    const tr_batch *const batch = pass->batch;
    const bert_nsp_kept *const k = &bert_kept(pass)->nsp;
    const tr_linear pooler = pooler_of(pass->params);
    const tr_linear classes = classes_of(pass);
    const size_t n = batch->n_seq;
    void *const dx = k->scratch;

    ops->linear_backward_weight(d, &classes, n, k->logits, k->pooled);
    ops->linear_backward_input(d, &classes, n, k->logits, 0, dx);
    ops->tanh_backward(d, n * pooler.out, k->pooled, dx);
    ops->linear_backward_weight(d, &pooler, n, dx, k->in);
    ops->linear_backward_input(d, &pooler, n, dx, 0, k->pooled);
    ops->scatter_rows(d, n, pooler.in, batch->cls_row, k->pooled, d_hidden);
}
