/*
 * heads_nsp.c - does the second part follow the first?  Dense and tanh on a
 * sequence's first row, the pooler, then two classes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "heads.h"

#include "softmax.h"

static bert_linear pooler_of(const bert_params *p)
{
    return bert_params_linear(p, bert_params_back(p, BERT_POOLER_WEIGHT),
                              bert_params_back(p, BERT_POOLER_BIAS), 1);
}

static bert_linear classes_of(const bert_params *p)
{
    return bert_params_linear(p, bert_params_back(p, BERT_NSP_WEIGHT),
                              bert_params_back(p, BERT_NSP_BIAS), 1);
}

/* Sequences without a label lose nothing. */
static double loss_of(const bert_batch *batch, const bert_nsp_kept *k)
{
    double total = 0;

    for (size_t i = 0; i < batch->n_seq; i++) {
        real *const logits = k->logits + 2 * i;
        const int32_t label = batch->nsp_label[i];

        if (label < 0) {
            logits[0] = logits[1] = 0;
            k->loss[i] = 0;
            continue;
        }
        k->loss[i] = bert_cross_entropy_row(2, logits, (size_t)label,
                                            batch->nsp_weight[i]);
        total += (double)batch->nsp_weight[i] * k->loss[i];
    }
    return total;
}

double bert_nsp_forward(const bert_params *params, const bert_batch *batch,
                        const real *hidden, const bert_nsp_kept *k)
{
    const bert_linear pooler = pooler_of(params);
    const bert_linear classes = classes_of(params);
    const size_t n = batch->n_seq;

    bert_gather_rows(n, pooler.in, batch->cls_row, hidden, k->in);
    bert_linear_forward(&pooler, n, k->in, k->pooled);
    for (size_t i = 0; i < n * pooler.out; i++)
        k->pooled[i] = tanh(k->pooled[i]);
    bert_linear_forward(&classes, n, k->pooled, k->logits);
    return loss_of(batch, k);
}

void bert_nsp_backward(const bert_params *params, const bert_batch *batch,
                       const bert_nsp_kept *k, real *d_hidden)
{
    const bert_linear pooler = pooler_of(params);
    const bert_linear classes = classes_of(params);
    const size_t n = batch->n_seq;
    real *const d = k->scratch;

    bert_linear_backward_weight(&classes, n, k->logits, k->pooled);
    bert_linear_backward_input(&classes, n, k->logits, 0, d);
    for (size_t i = 0; i < n * pooler.out; i++)
        d[i] *= 1 - k->pooled[i] * k->pooled[i];
    bert_linear_backward_weight(&pooler, n, d, k->in);
    bert_linear_backward_input(&pooler, n, d, 0, k->pooled);
    bert_scatter_rows(n, pooler.in, batch->cls_row, k->pooled, d_hidden);
}
