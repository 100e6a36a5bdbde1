/*
 * model_config_write.c - check a config, and compose its config.json.
 *
 * SPDX-License-Identifier: MIT
 */
#include "folder/model_config.h"

#include <stdint.h>
#include <string.h>

#include "data/error.h"
#include "model/sizes.h"

/* ---- Ranges ---- */

static ps_result bad(const char *key, const char *why, ps_error *err)
{
    return tr_error(err, PS_ERR_RANGE, MODEL_CONFIG_NAME ": %s: %s", key, why);
}

static ps_result check_sizes(const tr_config *c, ps_error *err)
{
    const struct {
        const char *key;
        uint32_t size;
    } sizes[] = {
        {"vocab_size", c->vocab_size},
        {"hidden_size", c->hidden},
        {"num_hidden_layers", c->layers},
        {"num_attention_heads", c->heads},
        {"intermediate_size", c->intermediate},
        {"max_position_embeddings", c->positions},
        {"type_vocab_size", c->types},
        {"num_key_value_heads", c->kv_heads},
        {"head_dim", c->head_width},
    };

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].size < 1 || sizes[i].size > INT32_MAX)
            return bad(sizes[i].key, "is not a number from 1 to 2147483647",
                       err);
    if (c->layers > TR_LAYERS_MAX)
        return bad("num_hidden_layers", "is above 1024", err);
    return PS_OK;
}

static ps_result check_heads(const tr_config *c, ps_error *err)
{
    if (c->family != TR_LLAMA && c->hidden % c->heads != 0)
        return bad("hidden_size", "is not a multiple of num_attention_heads",
                   err);
    if (c->family != TR_LLAMA && c->head_width != c->hidden / c->heads)
        return bad("head_dim", "is not hidden_size / num_attention_heads", err);
    if (c->heads % c->kv_heads != 0)
        return bad("num_attention_heads",
                   "is not a multiple of num_key_value_heads", err);
    if (c->family != TR_BERT && c->head_width % 2 != 0)
        return bad("head_dim", "is odd", err);
    if ((uint64_t)c->heads * c->head_width > INT32_MAX)
        return bad("head_dim", "times num_attention_heads exceeds 2147483647",
                   err);
    if (c->intermediate > INT32_MAX / 2)
        return bad("intermediate_size", "exceeds 1073741823", err);
    return PS_OK;
}

/* An upper bound of the weights' bytes, in double precision, saturating. */
static size_t weight_bytes(const tr_config *c)
{
    const size_t rows = tr_plus((size_t)2 * c->heads * c->head_width,
                                (size_t)3 * c->intermediate);
    const size_t queries = (size_t)2 * c->heads * c->head_width;
    const size_t layer = tr_times(c->hidden, tr_plus(rows + 16, queries));
    const size_t outside = tr_times(
        c->hidden, (size_t)2 * c->vocab_size + c->positions + c->types +
                       2 * (size_t)c->hidden + 16);

    return tr_times(tr_plus(tr_times(layer, c->layers), outside),
                    sizeof(double));
}

ps_result model_config_check(const tr_config *c, ps_error *err)
{
    ps_result r = check_sizes(c, err);

    if (r == PS_OK)
        r = check_heads(c, err);
    if (r != PS_OK)
        return r;
    if (!(c->dropout >= 0 && c->dropout < 1))
        return bad("hidden_dropout_prob", "is not from 0 to below 1", err);
    if (!(c->epsilon > 0 && c->epsilon < 1))
        return bad("epsilon of norms", "is not above 0 and below 1", err);
    if (weight_bytes(c) > PTRDIFF_MAX)
        return bad("hidden_size", "the model does not fit in memory", err);
    return PS_OK;
}

/* ---- Composing ---- */

/* Adds members to the object; a NULL `more` is an error.  Takes it over. */
static bool add(json_t *object, json_t *more)
{
    const bool done = more != NULL && json_object_update(object, more) == 0;

    json_decref(more);
    return done;
}

static const char *activation_name(const tr_config *c)
{
    return c->activation == TR_SILU ? "silu"
           : c->activation == TR_GELU ? "gelu"
           : c->family == TR_BERT     ? "gelu_new"
                                      : "gelu_pytorch_tanh";
}

static bool add_bert(json_t *object, const tr_config *c)
{
    return add(object,
               json_pack("{s:f,s:f,s:s,s:f,s:s,s:i,s:I,s:b}",
                         "attention_probs_dropout_prob", c->dropout,
                         "hidden_dropout_prob", c->dropout, "hidden_act",
                         activation_name(c), "layer_norm_eps", c->epsilon,
                         "position_embedding_type", "absolute", "pad_token_id",
                         0, "type_vocab_size", (json_int_t)c->types,
                         "tie_word_embeddings", 1));
}

/* Both forms of transformers 4 and 5 must read the same values. */
static json_t *rope_parameters(const tr_rope *rope)
{
    if (rope->factor == 1)
        return json_pack("{s:s,s:f}", "rope_type", "default", "rope_theta",
                         rope->theta);
    if (rope->low_factor == 0)
        return json_pack("{s:s,s:f,s:f}", "rope_type", "linear", "rope_theta",
                         rope->theta, "factor", rope->factor);
    return json_pack("{s:s,s:f,s:f,s:f,s:f,s:I}", "rope_type", "llama3",
                     "rope_theta", rope->theta, "factor", rope->factor,
                     "low_freq_factor", rope->low_factor, "high_freq_factor",
                     rope->high_factor, "original_max_position_embeddings",
                     (json_int_t)rope->old_positions);
}

static json_t *layer_types(const tr_config *c)
{
    json_t *list = json_array();
    bool done = list != NULL;

    for (uint32_t i = 0; i < c->layers && done; i++)
        done = json_array_append_new(
                   list, json_string(c->windowed[i] ? "sliding_attention"
                                                    : "full_attention")) == 0;
    if (done)
        return list;
    json_decref(list);
    return NULL;
}

static bool add_modernbert(json_t *object, const tr_config *c)
{
    /* Without windowed layers, any window will do. */
    const uint32_t window = c->window == 0 ? 1 : c->window;

    return add(object,
               json_pack("{s:s,s:s,s:f,s:I,s:b,s:o,s:{s:o,s:o},"
                         "s:n,s:n,s:n,s:n,s:n}",
                         "hidden_activation", activation_name(c),
                         "classifier_activation", activation_name(c),
                         "norm_eps", c->epsilon, "local_attention",
                         (json_int_t)(window == 1 ? 1 : 2 * (window - 1)),
                         "tie_word_embeddings", c->tied, "layer_types",
                         layer_types(c), "rope_parameters", "full_attention",
                         rope_parameters(&c->rope), "sliding_attention",
                         rope_parameters(&c->local_rope), "pad_token_id",
                         "bos_token_id", "eos_token_id", "cls_token_id",
                         "sep_token_id"));
}

/* The index of the first windowed layer. */
static uint32_t first_windowed(const tr_config *c)
{
    uint32_t i = 0;

    while (i < c->layers && !c->windowed[i])
        i++;
    return i;
}

static bool is_mistral(const tr_config *c)
{
    return c->family == TR_LLAMA && !c->qkv_bias && !c->qk_norm &&
           c->window != 0;
}

static bool add_windows(json_t *object, const tr_config *c)
{
    if (is_mistral(c))
        return add(object, json_pack("{s:I}", "sliding_window",
                                     (json_int_t)c->window));
    if (!c->qkv_bias && !c->qk_norm)
        return true;
    if (c->window == 0)
        return add(object, json_pack("{s:b,s:n}", "use_sliding_window", 0,
                                     "sliding_window"));
    return add(object, json_pack("{s:b,s:I,s:I,s:o}", "use_sliding_window", 1,
                                 "sliding_window", (json_int_t)c->window,
                                 "max_window_layers",
                                 (json_int_t)first_windowed(c), "layer_types",
                                 layer_types(c)));
}

static bool add_causal(json_t *object, const tr_config *c)
{
    return add(object, json_pack("{s:s,s:f,s:I,s:I,s:b,s:o,s:f,s:n,s:n,s:n}",
                                 "hidden_act", activation_name(c),
                                 "rms_norm_eps", c->epsilon,
                                 "num_key_value_heads",
                                 (json_int_t)c->kv_heads, "head_dim",
                                 (json_int_t)c->head_width,
                                 "tie_word_embeddings", c->tied,
                                 "rope_parameters", rope_parameters(&c->rope),
                                 "rope_theta", c->rope.theta, "pad_token_id",
                                 "bos_token_id", "eos_token_id")) &&
           add_windows(object, c);
}

static const char *type_name(const tr_config *c)
{
    switch (c->family) {
    case TR_BERT:
        return "bert";
    case TR_MODERNBERT:
        return "modernbert";
    case TR_LLAMA:
        break;
    }
    return c->qkv_bias ? "qwen2"
           : c->qk_norm ? "qwen3"
           : is_mistral(c) ? "mistral"
                           : "llama";
}

static const char *class_name(const char *type)
{
    static const struct {
        const char *type, *name;
    } classes[] = {
        {"bert", "BertForPreTraining"},
        {"modernbert", "ModernBertForMaskedLM"},
        {"llama", "LlamaForCausalLM"},
        {"qwen2", "Qwen2ForCausalLM"},
        {"qwen3", "Qwen3ForCausalLM"},
        {"mistral", "MistralForCausalLM"},
    };

    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strcmp(classes[i].type, type) == 0)
            return classes[i].name;
    return NULL;
}

ps_result model_config_adapt(json_t *object, ps_error *err)
{
    static const char *const keys[] = {"dtype", "torch_dtype"};
    const char *type = json_string_value(json_object_get(object, "model_type"));
    const char *architecture = type == NULL ? NULL : class_name(type);
    bool done = true;

    if (architecture != NULL)
        done = json_object_set_new(object, "architectures",
                                   json_pack("[s]", architecture)) == 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && done; i++)
        if (json_object_get(object, keys[i]) != NULL)
            done = json_object_set_new(object, keys[i],
                                       json_string("float32")) == 0;
    return done ? PS_OK : tr_error(err, PS_ERR_MEMORY, "out of memory");
}

json_t *model_config_compose(const tr_config *c)
{
    json_t *object = json_pack(
        "{s:[s],s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:f}", "architectures",
        class_name(type_name(c)), "model_type", type_name(c), "torch_dtype",
        "float32", "vocab_size", (json_int_t)c->vocab_size, "hidden_size",
        (json_int_t)c->hidden,
        "num_hidden_layers", (json_int_t)c->layers, "num_attention_heads",
        (json_int_t)c->heads, "intermediate_size", (json_int_t)c->intermediate,
        "max_position_embeddings", (json_int_t)c->positions,
        "initializer_range", c->deviation > 0 ? c->deviation : 0.02);
    bool done = object != NULL;

    if (done && c->family == TR_BERT)
        done = add_bert(object, c);
    else if (done && c->family == TR_MODERNBERT)
        done = add_modernbert(object, c);
    else if (done)
        done = add_causal(object, c);
    if (done)
        return object;
    json_decref(object);
    return NULL;
}
