/*
 * prenorm.c - models with a norm before each block: ModernBERT, and Llama and
 * its relatives.
 *
 * Llama: Touvron et al., "LLaMA: Open and Efficient Foundation Language Models"
 * (2023), section 2.2, with grouped queries (Ainslie et al., 2023).  Qwen3,
 * whose queries and keys are normalised: Yang et al., "Qwen3 Technical Report"
 * (2025), section 2.  ModernBERT: Warner et al., "Smarter, Better, Faster,
 * Longer" (2024), section 2.1.  In a pack, positions restart with each sequence
 * and sequences do not attend to each other.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model/prenorm/layer.h"

static size_t find(const tr_pass *pass, pre_tensor which)
{
    return pre_params_find(pass->params, pass->config, which);
}

static bool has_embedding_norm(const tr_pass *pass)
{
    return find(pass, PRE_EMBEDDING_NORM) != TR_NO_TENSOR;
}

static void zero(const tr_pass *pass, void *values)
{
    pass->ops->fill(pass->device, values, 0,
                    (size_t)pass->batch->n_rows * pass->config->hidden
                        * pass->device->value_size);
}

/* ---- Forward ---- */

static void embed(const tr_pass *pass)
{
    const tr_ops *const ops = pass->ops;
    tr_device *const d = pass->device;
    const size_t rows = pass->batch->n_rows;
    pre_activations *const a = pre_kept(pass);
    void *const x = a->layer[0].x;
    const bool normed = has_embedding_norm(pass);

    ops->lookup_forward(d, rows, pass->config->hidden, pass->batch->token,
                        tr_params_weight(pass->params, find(pass, PRE_WORD)),
                        normed ? a->branch : x);
    if (normed) {
        const tr_norm norm = pre_norm(pass, find(pass, PRE_EMBEDDING_NORM));

        ops->norm_forward(d, &norm, rows, a->branch, &a->embedding, x);
    }
}

static void forward(const tr_pass *pass)
{
    pre_activations *const a = pre_kept(pass);
    const tr_norm norm = pre_norm(pass, find(pass, PRE_FINAL_NORM));
    const uint32_t layers = pass->config->layers;

    tr_pass_needs(pass, layers + 1);
    embed(pass);
    for (uint32_t i = 0; i < layers; i++) {
        tr_pass_needs(pass, layers - i);
        pre_layer_forward(pass, i);
    }
    tr_pass_needs(pass, 0);
    pass->ops->add_norm_forward(pass->device, &norm, pass->batch->n_rows,
                                a->branch, a->x, a->x, &a->final,
                                a->out);
    pre_head_forward(pass);
}

/* ---- Backward ---- */

/*
 * Adds the gradient of the word embedding.  A tied decoder has already set it
 * to its own part.
 */
static void embed_backward(const tr_pass *pass)
{
    const tr_ops *const ops = pass->ops;
    tr_device *const d = pass->device;
    const size_t rows = pass->batch->n_rows;
    const tr_tensor *const word = pass->params->tensors + find(pass, PRE_WORD);
    real *const gradient = tr_params_gradient(pass->params,
                                              find(pass, PRE_WORD));
    pre_activations *const a = pre_kept(pass);
    void *d_word = a->scratch.d_x;

    if (has_embedding_norm(pass)) {
        const tr_norm norm = pre_norm(pass, find(pass, PRE_EMBEDDING_NORM));

        d_word = a->scratch.d_in;
        zero(pass, d_word);
        ops->add_norm_backward(d, &norm, rows, &a->embedding, a->scratch.d_x,
                               d_word);
    }
    if (!pass->config->tied && !pass->params->adds)
        ops->fill(d, gradient, 0,
                  (size_t)word->rows * word->columns * sizeof *gradient);
    ops->lookup_backward(d, rows, word->columns, pass->batch->token, d_word,
                         gradient);
}

static void backward(const tr_pass *pass)
{
    const pre_activations *const a = pre_kept(pass);
    const pre_scratch *const s = &a->scratch;
    const tr_norm norm = pre_norm(pass, find(pass, PRE_FINAL_NORM));
    const uint32_t layers = pass->config->layers;

    pre_head_backward(pass, s->d_in);
    zero(pass, s->d_x);
    pass->ops->add_norm_backward(pass->device, &norm, pass->batch->n_rows,
                                 &a->final, s->d_in, s->d_x);
    tr_pass_done(pass, 0);
    for (uint32_t i = layers; i > 0; i--) {
        /* The last layer's activations are still there. */
        if (pass->recompute && i < layers)
            pre_layer_recompute(pass, i - 1);
        pre_layer_backward(pass, i - 1);
        tr_pass_done(pass, layers - i + 1);
    }
    embed_backward(pass);
    tr_pass_done(pass, layers + 1);
}

static tr_outputs outputs(const tr_pass *pass)
{
    const pre_activations *const a = pre_kept(pass);

    return (tr_outputs){.hidden = a->out, .mlm = a->head.loss,
                        .right = pass->evaluate ? a->head.right : NULL};
}

const tr_family_ops tr_prenorm_family = {
    .list = pre_params_list,
    .open = pre_activations_open,
    .close = pre_activations_free,
    .lay_out = pre_activations_lay_out,
    .forward = forward,
    .backward = backward,
    .outputs = outputs};
