/*
 * bert.c - BERT's encoder with its two pre-training heads, and gradients.
 *
 * The model follows Devlin et al., "BERT: Pre-training of Deep Bidirectional
 * Transformers" (2018), section 3 and appendix A: a post-layer-norm encoder
 * with epsilon 1e-12, a masked-LM head (dense, GELU, layer norm, and a decoder
 * with bias whose weight is the token embedding), and a next-sentence head on
 * the first row of each sequence.  In a pack, positions restart with each
 * sequence and attention is block-diagonal, as in Krell et al., "Efficient
 * Sequence Packing without Cross-contamination" (2021), section 3.2.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model/bert/activations.h"
#include "model/bert/dropout_sites.h"
#include "model/bert/encoder.h"
#include "model/bert/heads.h"
#include "model/bert/params.h"

static tr_tables tables_of(const tr_params *p)
{
    return (tr_tables){
        .word = tr_params_weight(p, BERT_WORD),
        .position = tr_params_weight(p, BERT_POSITION),
        .type = tr_params_weight(p, BERT_TYPE),
        .word_gradient = tr_params_gradient(p, BERT_WORD),
        .position_gradient = tr_params_gradient(p, BERT_POSITION),
        .type_gradient = tr_params_gradient(p, BERT_TYPE)};
}

static tr_norm embedding_norm(const tr_params *p)
{
    return bert_params_norm(p, BERT_EMBEDDING_GAIN, BERT_EMBEDDING_BIAS);
}

/* The input of a layer; if layer is config.layers, the encoder's output. */
static const void *input_of(const tr_pass *pass, uint32_t layer)
{
    const bert_activations *const a = bert_kept(pass);

    return layer ? a->layer[layer - 1].out : a->embedded;
}

static const void *output_of(const tr_pass *pass)
{
    return input_of(pass, pass->config->layers);
}

static void forward(const tr_pass *pass)
{
    bert_activations *const a = bert_kept(pass);
    const tr_tables tables = tables_of(pass->params);
    const tr_norm norm = embedding_norm(pass->params);
    const uint32_t layers = pass->config->layers;

    tr_pass_needs(pass, layers + 1);
    pass->ops->embed_forward(pass->device, &tables, &norm, pass->batch,
                             &pass->dropout, BERT_SITE_EMBEDDING,
                             &a->embedding_norm, a->embedded);
    for (uint32_t i = 0; i < layers; i++) {
        tr_pass_needs(pass, layers - i);
        bert_encoder_forward(pass, i, input_of(pass, i));
    }
    tr_pass_needs(pass, 0);
    bert_mlm_forward(pass, output_of(pass));
    bert_nsp_forward(pass, output_of(pass));
}

/*
 * Zeroes the gradients of the position and type tables, because operations only
 * add to them.  The decoder's backward sets the gradients of the word table
 * before the input rows are added.
 */
static void clear_tables(const tr_pass *pass)
{
    const tr_params *const p = pass->params;
    const size_t first = p->tensors[BERT_POSITION].offset;
    const size_t end = p->tensors[BERT_EMBEDDING_GAIN].offset;

    pass->ops->fill(pass->device, p->gradients.at + first, 0,
                    (end - first) * sizeof(real));
}

static void backward(const tr_pass *pass)
{
    bert_activations *const a = bert_kept(pass);
    const tr_tables tables = tables_of(pass->params);
    const tr_norm norm = embedding_norm(pass->params);
    const uint32_t layers = pass->config->layers;
    void *const d_x = a->scratch.d_x;

    pass->ops->fill(pass->device, d_x, 0,
                    (size_t)pass->batch->n_rows * pass->config->hidden
                        * pass->device->value_size);
    bert_mlm_backward(pass, d_x);
    bert_nsp_backward(pass, d_x);
    tr_pass_done(pass, 0);
    for (uint32_t i = layers; i > 0; i--) {
        /* The last layer's activations are still there. */
        if (pass->recompute && i < layers)
            bert_encoder_forward(pass, i - 1, input_of(pass, i - 1));
        bert_encoder_backward(pass, i - 1, input_of(pass, i - 1));
        tr_pass_done(pass, layers - i + 1);
    }
    if (!pass->params->adds)
        clear_tables(pass);
    pass->ops->embed_backward(pass->device, &tables, &norm, pass->batch,
                              &pass->dropout, BERT_SITE_EMBEDDING,
                              &a->embedding_norm, d_x);
    tr_pass_done(pass, layers + 1);
}

static tr_outputs outputs(const tr_pass *pass)
{
    const bert_activations *const a = bert_kept(pass);

    return (tr_outputs){.hidden = output_of(pass),
                        .mlm = a->mlm.loss,
                        .nsp = a->nsp.loss,
                        .right = pass->evaluate ? a->mlm.right : NULL};
}

const tr_family_ops tr_bert_family = {
    .list = bert_params_list,
    .open = bert_activations_open,
    .close = bert_activations_free,
    .lay_out = bert_activations_lay_out,
    .forward = forward,
    .backward = backward,
    .outputs = outputs};
