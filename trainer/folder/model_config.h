/*
 * model_config.h - config.json of a model folder, read and composed.
 *
 * The model types bert, modernbert, llama, qwen2, qwen3 and mistral are read,
 * in the forms that transformers 4.4x and 5.x write.  Absent keys have the
 * defaults of the transformers classes.  A setting that would change the
 * model's results and is not supported is an error that names the key.
 *
 * The following keys are ignored on purpose: they concern initial values,
 * generation, caching, classifier heads (classifier_dropout), special tokens
 * and `architectures`.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_FOLDER_MODEL_CONFIG_H
#define TR_FOLDER_MODEL_CONFIG_H

#include <stdbool.h>

#include <jansson.h>

#include "model/config.h"
#include "packstream.h"

#define MODEL_CONFIG_NAME "config.json"

/* Largest config.json that is read, in bytes. */
#define MODEL_CONFIG_MAX (1 << 20)

/*
 * Reads config.json in the directory `folder`, a descriptor.
 *
 * For all families, kv_heads, head_width, tied and rope are set (BERT: heads,
 * hidden / heads, true, and a factor of 1).  Without windowed layers `window`
 * is 0; without a rope of their own, local_rope equals rope.  Sizes are at
 * most INT32_MAX, heads * head_width and 2 * intermediate too.
 *
 * PS_OK, PS_ERR_IO, PS_ERR_MEMORY, PS_ERR_LIMIT (the file is too large),
 * PS_ERR_TRUNCATED, PS_ERR_CORRUPT (not a JSON object, or a value of the wrong
 * type), PS_ERR_RANGE (a number out of range), PS_ERR_UNSUPPORTED.  *config is
 * unchanged after an error.  Messages start with "config.json: ".
 */
ps_result model_config_read(int folder, tr_config *config, ps_error *err);

/* The same, from a parsed object. */
ps_result model_config_parse(const json_t *object, tr_config *config,
                             ps_error *err);

/*
 * Checks the ranges that model_config_read guarantees, for a config made from
 * options.  PS_OK, PS_ERR_RANGE (the message names the key of config.json).
 */
ps_result model_config_check(const tr_config *config, ps_error *err);

/*
 * Composes the object of config.json for a model that has been made from
 * options.  model_config_parse returns an equal config.  Its architecture is
 * the family's class with all heads: BertForPreTraining, ModernBertForMaskedLM,
 * LlamaForCausalLM, Qwen2ForCausalLM (qkv_bias), Qwen3ForCausalLM (qk_norm) or
 * MistralForCausalLM (all layers have the same window).  Pad, begin and end
 * tokens are null, except BERT's padding, 0.
 *
 * Returns NULL if out of memory; the caller releases it with json_decref.
 */
json_t *model_config_compose(const tr_config *config);

/*
 * Changes an object of config.json for weights that are saved in F32:
 * `architectures` becomes the class with all heads that model_config_compose
 * names; dtype and torch_dtype, if present, become float32.
 * PS_OK, PS_ERR_MEMORY.
 */
ps_result model_config_adapt(json_t *object, ps_error *err);

#endif /* TR_FOLDER_MODEL_CONFIG_H */
