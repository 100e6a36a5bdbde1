/*
 * model_config.c - read config.json of a model folder.
 *
 * SPDX-License-Identifier: MIT
 */
#include "folder/model_config.h"

#include <stdlib.h>
#include <string.h>

#include "data/error.h"
#include "folder/config_reader.h"
#include "folder/json_file.h"
#include "folder/named_error.h"

typedef enum model_type {
    BERT,
    MODERNBERT,
    LLAMA,
    QWEN2,
    QWEN3,
    MISTRAL,
    N_TYPES
} model_type;

/* Sets of model types. */
enum {
    OF_BERT = 1 << BERT,
    OF_MODERNBERT = 1 << MODERNBERT,
    OF_LLAMA = 1 << LLAMA,
    OF_QWEN = 1 << QWEN2 | 1 << QWEN3,
    OF_CAUSAL = OF_LLAMA | OF_QWEN | 1 << MISTRAL,
    OF_PRE_NORM = OF_MODERNBERT | OF_CAUSAL,
    OF_ALL = OF_BERT | OF_PRE_NORM
};

/* The defaults of a class of transformers, and its names of keys. */
typedef struct type_row {
    const char *name;
    tr_family family;
    uint32_t vocab_size, hidden, layers, heads, intermediate, positions;
    uint32_t kv_heads;   /* 0: as many as heads */
    uint32_t head_width; /* 0: hidden / heads */
    const char *epsilon_key;
    double epsilon;
    const char *activation_key;
    const char *activation;
    bool tied;
} type_row;

static const type_row rows[N_TYPES] = {
    [BERT] = {"bert", TR_BERT, 30522, 768, 12, 12, 3072, 512, 0, 0,
              "layer_norm_eps", 1e-12, "hidden_act", "gelu", true},
    [MODERNBERT] = {"modernbert", TR_MODERNBERT, 50368, 768, 22, 12, 1152, 8192,
                    0, 0, "norm_eps", 1e-5, "hidden_activation", "gelu", true},
    [LLAMA] = {"llama", TR_LLAMA, 32000, 4096, 32, 32, 11008, 2048, 0, 0,
               "rms_norm_eps", 1e-6, "hidden_act", "silu", false},
    [QWEN2] = {"qwen2", TR_LLAMA, 151936, 4096, 32, 32, 22016, 32768, 32, 0,
               "rms_norm_eps", 1e-6, "hidden_act", "silu", false},
    [QWEN3] = {"qwen3", TR_LLAMA, 151936, 4096, 32, 32, 22016, 32768, 32, 128,
               "rms_norm_eps", 1e-6, "hidden_act", "silu", false},
    [MISTRAL] = {"mistral", TR_LLAMA, 32000, 4096, 32, 32, 14336, 131072, 8, 0,
                 "rms_norm_eps", 1e-6, "hidden_act", "silu", false},
};

#define DEFAULT_WINDOW 4096 /* sliding_window of Qwen and Mistral */

/* ---- Settings with one supported value ---- */

typedef struct fixed_key {
    const char *key;
    double value; /* 0: also false, "", [] and {}; 1: also true */
    unsigned types;
} fixed_key;

static const fixed_key fixed[] = {
    {"add_cross_attention", 0, OF_ALL},
    {"attention_bias", 0, OF_PRE_NORM & ~(1 << QWEN2)},
    {"attention_dropout", 0, OF_PRE_NORM},
    {"attention_multiplier", 1, OF_ALL},
    {"attn_logit_softcapping", 0, OF_ALL},
    {"classifier_bias", 0, OF_MODERNBERT},
    {"decoder_bias", 1, OF_MODERNBERT},
    {"embedding_dropout", 0, OF_MODERNBERT},
    {"embedding_multiplier", 1, OF_ALL},
    {"final_logit_softcapping", 0, OF_ALL},
    {"is_causal", 1, OF_CAUSAL},
    {"is_causal", 0, OF_BERT | OF_MODERNBERT},
    {"is_decoder", 0, OF_BERT | OF_MODERNBERT},
    {"is_encoder_decoder", 0, OF_ALL},
    {"logit_scale", 1, OF_ALL},
    {"logits_scaling", 1, OF_ALL},
    {"mlp_bias", 0, OF_PRE_NORM},
    {"mlp_dropout", 0, OF_MODERNBERT},
    {"norm_bias", 0, OF_MODERNBERT},
    {"partial_rotary_factor", 1, OF_PRE_NORM},
    {"per_layer_config", 0, OF_ALL},
    {"pruned_heads", 0, OF_ALL},
    {"quantization_config", 0, OF_ALL},
    {"query_pre_attn_scalar", 0, OF_ALL},
    {"residual_multiplier", 1, OF_ALL},
    {"tie_word_embeddings", 1, OF_BERT},
    {"use_bidirectional_attention", 0, OF_CAUSAL},
};

/* True if the value means the number. */
static bool equals(const json_t *value, double number)
{
    switch (json_typeof(value)) {
    case JSON_NULL:
        return true;
    case JSON_TRUE:
        return number != 0;
    case JSON_FALSE:
        return number == 0;
    case JSON_INTEGER:
    case JSON_REAL:
        return json_number_value(value) == number;
    case JSON_STRING:
        return number == 0 && json_string_length(value) == 0;
    case JSON_ARRAY:
        return number == 0 && json_array_size(value) == 0;
    case JSON_OBJECT:
        return number == 0 && json_object_size(value) == 0;
    }
    return false;
}

static void check_fixed(config_reader *r, model_type type)
{
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        const json_t *value = json_object_get(r->object, fixed[i].key);

        if ((fixed[i].types >> type & 1) != 0 && value != NULL &&
            !equals(value, fixed[i].value))
            config_fail(r, PS_ERR_UNSUPPORTED, fixed[i].key, value,
                        "is not supported");
    }
}

/* ---- Activations ---- */

static tr_activation get_activation(config_reader *r, const char *key,
                                    const char *absent)
{
    static const struct {
        const char *name;
        tr_activation activation;
    } names[] = {
        {"gelu", TR_GELU},          {"gelu_python", TR_GELU},
        {"gelu_new", TR_GELU_TANH}, {"gelu_pytorch_tanh", TR_GELU_TANH},
        {"silu", TR_SILU},          {"swish", TR_SILU},
    };
    const char *name = config_text(r, r->object, key, absent);

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i].name) == 0)
            return names[i].activation;
    config_fail(r, PS_ERR_UNSUPPORTED, key, NULL,
                "is not supported (gelu, gelu_new, gelu_pytorch_tanh and silu "
                "are)");
    return TR_GELU;
}

/* ---- Rotary positions ---- */

static void read_llama3(config_reader *r, const json_t *entry,
                        uint32_t positions, tr_rope *rope)
{
    const uint32_t outer =
        config_size(r, "original_max_position_embeddings", 0);
    config_reader in = {entry, r->err, r->result};
    const uint32_t own =
        config_size(&in, "original_max_position_embeddings", 0);

    r->result = in.result;
    rope->low_factor = config_real(r, entry, "low_freq_factor", 0, 0, false);
    rope->high_factor = config_real(r, entry, "high_freq_factor", 0, 0, false);
    rope->old_positions = own != 0 ? own : outer != 0 ? outer : positions;
    if (own != 0 && outer != 0 && own != outer)
        config_fail_key(r, PS_ERR_UNSUPPORTED,
                        "original_max_position_embeddings", "has two values");
    if (rope->low_factor == 0 || rope->high_factor <= rope->low_factor)
        config_fail_key(r, PS_ERR_RANGE, "low_freq_factor, high_freq_factor",
                        "the second must be above the first");
}

/* Reads one set of parameters; `entry` may be NULL. */
static void read_rope(config_reader *r, const json_t *entry, double theta,
                      uint32_t positions, tr_rope *rope)
{
    const char *type = config_text(r, entry, "rope_type",
                                   config_text(r, entry, "type", "default"));
    const json_t *part = json_object_get(entry, "partial_rotary_factor");

    if (part != NULL && !equals(part, 1))
        config_fail(r, PS_ERR_UNSUPPORTED, "partial_rotary_factor", part,
                    "is not supported");
    rope->theta = config_real(r, entry, "rope_theta", theta, 0, false);
    rope->factor = 1;
    if (strcmp(type, "default") == 0)
        return;
    if (strcmp(type, "linear") != 0 && strcmp(type, "llama3") != 0) {
        json_t *shown = json_string(type);

        config_fail(r, PS_ERR_UNSUPPORTED, "rope_type", shown,
                    "is not supported (default, linear and llama3 are)");
        json_decref(shown);
        return;
    }
    if (config_find(entry, "factor") == NULL)
        config_fail_key(r, PS_ERR_CORRUPT, "factor",
                        "missing in rope parameters");
    rope->factor = config_real(r, entry, "factor", 1, 0, false);
    if (strcmp(type, "llama3") == 0)
        read_llama3(r, entry, positions, rope);
}

/* Returns the parameters of a type of layers in an object of such, or NULL. */
static const json_t *rope_of(config_reader *r, const json_t *parameters,
                             const char *layers)
{
    const json_t *entry = config_find(parameters, layers);

    if (entry != NULL && !json_is_object(entry))
        config_fail(r, PS_ERR_CORRUPT, layers, entry, "is not an object");
    return entry;
}

/* Returns an object, or NULL if it is absent, null or empty. */
static const json_t *get_object(config_reader *r, const char *key)
{
    const json_t *value = config_find(r->object, key);

    if (value != NULL && !json_is_object(value))
        config_fail(r, PS_ERR_CORRUPT, key, value, "is not an object");
    return json_object_size(value) == 0 ? NULL : value;
}

static bool is_nested(const json_t *parameters)
{
    return json_object_get(parameters, "full_attention") != NULL ||
           json_object_get(parameters, "sliding_attention") != NULL;
}

/* The keys of transformers 4: rope_theta and rope_scaling.  In 5 there is
 * rope_parameters, for all layers or for each type of layers. */
static void read_causal_ropes(config_reader *r, tr_config *c)
{
    const double theta =
        config_real(r, r->object, "rope_theta", 10000, 0, false);
    const json_t *scaling = get_object(r, "rope_scaling");
    const json_t *all =
        scaling != NULL ? scaling : get_object(r, "rope_parameters");
    const bool nested = is_nested(all);
    const json_t *full = nested ? rope_of(r, all, "full_attention") : all;
    const json_t *local = nested ? rope_of(r, all, "sliding_attention") : all;

    read_rope(r, full, theta, c->positions, &c->rope);
    read_rope(r, local, theta, c->positions, &c->local_rope);
}

static void read_modernbert_ropes(config_reader *r, tr_config *c)
{
    const double global =
        config_real(r, r->object, "global_rope_theta", 160000, 0, false);
    const bool is_null = json_is_null(
        json_object_get(r->object, "local_rope_theta"));
    const double local = config_real(r, r->object, "local_rope_theta",
                                     is_null ? global : 10000, 0, false);
    const json_t *all = get_object(r, "rope_parameters");
    const json_t *scaling = get_object(r, "rope_scaling");

    /* The versions treat these two differently. */
    if (all != NULL && !is_nested(all))
        config_fail(r, PS_ERR_UNSUPPORTED, "rope_parameters", all,
                    "is not by types of layers");
    if (scaling != NULL)
        config_fail(r, PS_ERR_UNSUPPORTED, "rope_scaling", scaling,
                    "is not supported");
    read_rope(r, rope_of(r, all, "full_attention"), global, c->positions,
              &c->rope);
    read_rope(r, rope_of(r, all, "sliding_attention"), local, c->positions,
              &c->local_rope);
}

/* ---- Windows ---- */

/* Reads layer_types, if given, to c->windowed. */
static bool read_layer_types(config_reader *r, tr_config *c)
{
    const json_t *list = config_find(r->object, "layer_types");

    if (list == NULL)
        return false;
    if (json_array_size(list) != c->layers) {
        config_fail_key(r, PS_ERR_CORRUPT, "layer_types",
                        "is not a list with an element for each layer");
        return true;
    }
    for (uint32_t i = 0; i < c->layers; i++) {
        const json_t *value = json_array_get(list, i);
        const char *type = json_string_value(value);

        c->windowed[i] = type != NULL && strcmp(type, "sliding_attention") == 0;
        if (!c->windowed[i] &&
            (type == NULL || strcmp(type, "full_attention") != 0))
            config_fail(r, PS_ERR_UNSUPPORTED, "layer_types", value,
                        "is not supported (full_attention and "
                        "sliding_attention are)");
    }
    return true;
}

/* Sliding windows of Qwen: in the layers from max_window_layers on. */
static void read_qwen_windows(config_reader *r, tr_config *c)
{
    const json_t *value = config_find(r->object, "max_window_layers");
    const json_int_t first = value == NULL ? 28 : json_integer_value(value);
    const bool is_used = config_bool(r, "use_sliding_window", false) &&
                         (!config_is_given(r, "sliding_window") ||
                          config_find(r->object, "sliding_window") != NULL);
    const uint32_t window = config_size(r, "sliding_window", DEFAULT_WINDOW);

    if (value != NULL && (!json_is_integer(value) || first < 0))
        config_fail(r, PS_ERR_RANGE, "max_window_layers", value,
                    "is not a number of 0 or more");
    if (!read_layer_types(r, c))
        for (uint32_t i = 0; i < c->layers; i++)
            c->windowed[i] = is_used && (json_int_t)i >= first;
    c->window = is_used ? window : 0;
}

/* Mistral has one window for all layers, whatever layer_types has. */
static void read_mistral_windows(config_reader *r, tr_config *c)
{
    const bool is_used = !config_is_given(r, "sliding_window") ||
                         config_find(r->object, "sliding_window") != NULL;
    const bool listed = read_layer_types(r, c);

    for (uint32_t i = 0; i < c->layers; i++) {
        if (listed && c->windowed[i] != is_used)
            config_fail_key(r, PS_ERR_UNSUPPORTED, "layer_types",
                            "contradicts sliding_window, which mistral uses "
                            "in all layers");
        c->windowed[i] = is_used;
    }
    c->window = is_used ? config_size(r, "sliding_window", DEFAULT_WINDOW) : 0;
}

/* local_attention is the window on both sides: 128 means a distance of at most
 * 64. */
static void read_modernbert_windows(config_reader *r, tr_config *c)
{
    const uint32_t every = config_size(r, "global_attn_every_n_layers", 3);

    if (!read_layer_types(r, c))
        for (uint32_t i = 0; i < c->layers; i++)
            c->windowed[i] = i % every != 0;
    c->window = config_size(r, "local_attention", 128) / 2 + 1;
    if (config_find(r->object, "sliding_window") != NULL)
        config_fail(r, PS_ERR_UNSUPPORTED, "sliding_window", NULL,
                    "is not supported in modernbert (local_attention is)");
}

static void read_windows(config_reader *r, model_type type, tr_config *c)
{
    bool any = false;

    if (type == MODERNBERT)
        read_modernbert_windows(r, c);
    else if (type == MISTRAL)
        read_mistral_windows(r, c);
    else if (type != LLAMA)
        read_qwen_windows(r, c);
    else
        (void)read_layer_types(r, c);
    for (uint32_t i = 0; i < c->layers; i++)
        any = any || c->windowed[i];
    if (any && c->window == 0)
        config_fail_key(r, PS_ERR_UNSUPPORTED, "layer_types",
                        type == LLAMA
                            ? "llama has no sliding_attention"
                            : "has sliding_attention, but sliding_window or "
                              "use_sliding_window is not set");
    if (!any)
        c->window = 0;
}

/* ---- Families ---- */

static void read_bert(config_reader *r, tr_config *c)
{
    const double other = config_real(
        r, r->object, "attention_probs_dropout_prob", 0.1, 0, true);
    const char *positions =
        config_text(r, r->object, "position_embedding_type", "absolute");

    c->types = config_size(r, "type_vocab_size", 2);
    c->dropout = config_real(r, r->object, "hidden_dropout_prob", 0.1, 0, true);
    c->rope = (tr_rope){.theta = 10000, .factor = 1};
    c->local_rope = c->rope;
    if (c->dropout != other)
        config_fail_key(r, PS_ERR_UNSUPPORTED, "hidden_dropout_prob, "
                        "attention_probs_dropout_prob", "must be equal");
    if (strcmp(positions, "absolute") != 0)
        config_fail(r, PS_ERR_UNSUPPORTED, "position_embedding_type",
                    NULL, "is not supported");
}

static void read_modernbert(config_reader *r, tr_config *c)
{
    if (get_activation(r, "classifier_activation", "gelu") != c->activation)
        config_fail_key(r, PS_ERR_UNSUPPORTED, "classifier_activation",
                        "differs from hidden_activation");
    if (c->head_width != c->hidden / c->heads)
        config_fail(r, PS_ERR_UNSUPPORTED, "head_dim", NULL,
                    "is not hidden_size / num_attention_heads");
    read_windows(r, MODERNBERT, c);
    read_modernbert_ropes(r, c);
}

static void read_causal(config_reader *r, model_type type, tr_config *c)
{
    c->qkv_bias = type == QWEN2;
    c->qk_norm = type == QWEN3;
    if (type == LLAMA && c->hidden % c->heads != 0)
        config_fail_key(r, PS_ERR_RANGE, "hidden_size",
                        "is not a multiple of num_attention_heads");
    read_windows(r, type, c);
    read_causal_ropes(r, c);
}

/* Heads, and their width: null means one for each head of queries, and
 * hidden_size / num_attention_heads; the defaults may differ. */
static void read_heads(config_reader *r, const type_row *row, tr_config *c)
{
    const bool causal = row->family == TR_LLAMA;

    c->heads = config_size(r, "num_attention_heads", row->heads);
    c->kv_heads = c->heads;
    if (causal && !config_is_given(r, "num_key_value_heads") &&
        row->kv_heads != 0)
        c->kv_heads = row->kv_heads;
    if (causal)
        c->kv_heads = config_size(r, "num_key_value_heads", c->kv_heads);
    c->head_width = row->head_width;
    if (row->head_width == 0 || config_is_given(r, "head_dim"))
        c->head_width = c->hidden / c->heads;
    if (row->family != TR_BERT)
        c->head_width = config_size(r, "head_dim", c->head_width);
}

static void read_all(config_reader *r, model_type type, tr_config *c)
{
    const type_row *row = &rows[type];

    check_fixed(r, type);
    c->family = row->family;
    c->vocab_size = config_size(r, "vocab_size", row->vocab_size);
    c->hidden = config_size(r, "hidden_size", row->hidden);
    c->layers = config_size(r, "num_hidden_layers", row->layers);
    if (c->layers > TR_LAYERS_MAX) {
        config_fail(r, PS_ERR_RANGE, "num_hidden_layers", NULL,
                    "is above 1024");
        c->layers = TR_LAYERS_MAX;
    }
    c->intermediate = config_size(r, "intermediate_size", row->intermediate);
    c->positions = config_size(r, "max_position_embeddings", row->positions);
    c->activation = get_activation(r, row->activation_key, row->activation);
    c->epsilon = config_real(r, r->object, row->epsilon_key, row->epsilon, 0,
                             false);
    c->deviation = config_real(r, r->object, "initializer_range", 0.02, 0,
                               false);
    c->tied = config_bool(r, "tie_word_embeddings", row->tied);
    c->types = 1;
    read_heads(r, row, c);
    if (type == BERT)
        read_bert(r, c);
    else if (type == MODERNBERT)
        read_modernbert(r, c);
    else
        read_causal(r, type, c);
}

/* ---- The file ---- */

static model_type get_type(config_reader *r)
{
    const char *name = config_text(r, r->object, "model_type", NULL);

    if (name == NULL) {
        config_fail_key(r, PS_ERR_UNSUPPORTED, "model_type", "missing");
        return N_TYPES;
    }
    for (int i = 0; i < N_TYPES; i++)
        if (strcmp(name, rows[i].name) == 0)
            return (model_type)i;
    config_fail(r, PS_ERR_UNSUPPORTED, "model_type", NULL,
                "is not supported (bert, modernbert, llama, qwen2, qwen3 and "
                "mistral are)");
    return N_TYPES;
}

ps_result model_config_parse(const json_t *object, tr_config *config,
                             ps_error *err)
{
    config_reader r = {object, err, PS_OK};
    const model_type type = get_type(&r);
    tr_config *c;

    if (type == N_TYPES)
        return r.result;
    c = calloc(1, sizeof *c);
    if (c == NULL)
        return tr_error(err, PS_ERR_MEMORY, "out of memory");
    read_all(&r, type, c);
    if (r.result == PS_OK)
        r.result = model_config_check(c, err);
    if (r.result == PS_OK)
        *config = *c;
    free(c);
    return r.result;
}

ps_result model_config_read(int folder, tr_config *config, ps_error *err)
{
    json_t *object;
    ps_result r = json_file_read(folder, MODEL_CONFIG_NAME, MODEL_CONFIG_MAX,
                                 &object, err);

    if (r != PS_OK)
        return named_error(err, MODEL_CONFIG_NAME);
    r = model_config_parse(object, config, err);
    json_decref(object);
    return r;
}
