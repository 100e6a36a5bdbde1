/*
 * heads_mlm.c - which token was masked?  Dense, GELU, layer norm, then the
 * word embedding, used backwards, with a bias.
 *
 * The only large array is n_mlm x vocab_size; logits, softmax and gradient
 * are in it one after the other.
 *
 * SPDX-License-Identifier: MIT
 */
#include "heads.h"

#include "gelu.h"
#include "softmax.h"

static bert_linear dense_of(const bert_params *p)
{
    return bert_params_linear(p, bert_params_back(p, BERT_TRANSFORM_WEIGHT),
                              bert_params_back(p, BERT_TRANSFORM_BIAS), 1);
}

static bert_norm norm_of(const bert_params *p)
{
    return bert_params_norm(p, bert_params_back(p, BERT_TRANSFORM_GAIN),
                            bert_params_back(p, BERT_TRANSFORM_SHIFT));
}

static bert_linear decoder_of(const bert_params *p)
{
    return bert_params_linear(p, BERT_WORD,
                              bert_params_back(p, BERT_DECODER_BIAS), 1);
}

/* Logits become their gradient. */
static double loss_of(const bert_batch *batch, size_t vocab,
                      const bert_mlm_kept *k)
{
    double total = 0;

#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < batch->n_mlm; i++)
        k->loss[i] = bert_cross_entropy_row(vocab, k->logits + i * vocab,
                                            (size_t)batch->mlm_label[i],
                                            batch->mlm_weight[i]);
    for (size_t i = 0; i < batch->n_mlm; i++)
        total += (double)batch->mlm_weight[i] * k->loss[i];
    return total;
}

double bert_mlm_forward(const bert_params *params, const bert_batch *batch,
                        const real *hidden, const bert_mlm_kept *k)
{
    const bert_linear dense = dense_of(params);
    const bert_norm norm = norm_of(params);
    const bert_linear decoder = decoder_of(params);
    const size_t n = batch->n_mlm;

    bert_gather_rows(n, dense.in, batch->mlm_row, hidden, k->in);
    bert_linear_forward(&dense, n, k->in, k->dense);
    bert_gelu_forward(n, dense.out, k->dense, k->scratch);
    bert_norm_forward(&norm, n, k->scratch, &k->norm, k->out);
    bert_linear_forward(&decoder, n, k->out, k->logits);
    return loss_of(batch, decoder.out, k);
}

void bert_mlm_backward(const bert_params *params, const bert_batch *batch,
                       const bert_mlm_kept *k, real *d_hidden)
{
    const bert_linear dense = dense_of(params);
    const bert_norm norm = norm_of(params);
    const bert_linear decoder = decoder_of(params);
    const size_t n = batch->n_mlm;
    real *const d = k->scratch;

    bert_linear_backward_weight(&decoder, n, k->logits, k->out);
    bert_linear_backward_input(&decoder, n, k->logits, 0, d);
    bert_norm_backward(&norm, n, &k->norm, d, d);
    bert_gelu_backward(n, dense.out, k->dense, d, k->out);
    bert_linear_backward_weight(&dense, n, d, k->in);
    bert_linear_backward_input(&dense, n, d, 0, k->out);
    bert_scatter_rows(n, dense.in, batch->mlm_row, k->out, d_hidden);
}
