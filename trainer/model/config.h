/*
 * config.h - the architecture of a model, as in its config.json.
 *
 * Two families of layers cover the supported architectures: BERT's, with a norm
 * after each block, and pre-norm layers (ModernBERT, Llama and its relatives).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_MODEL_CONFIG_H
#define TR_MODEL_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#define TR_LAYERS_MAX 1024

typedef enum tr_family {
    TR_BERT,       /* bidirectional, norm after each block, MLM and NSP heads */
    TR_MODERNBERT, /* bidirectional, norm before each block, MLM head */
    TR_LLAMA       /* causal, norm before each block; also Qwen and Mistral */
} tr_family;

typedef enum tr_activation {
    TR_GELU_TANH, /* "gelu_new", "gelu_pytorch_tanh" */
    TR_GELU,      /* x times the normal distribution function: "gelu" */
    TR_SILU       /* x / (1 + e^-x): "silu" */
} tr_activation;

/* Rotary positions: pair i of a head turns by theta^(-2 i / head_width) per
 * position, slowed down by scaling. */
typedef struct tr_rope {
    double theta;
    double factor; /* 1: no scaling */
    /* The rule of Llama 3.1: wavelengths below old_positions / high_factor keep
     * their frequency, those above old_positions / low_factor are divided by
     * factor, and those between are interpolated.  low_factor 0: all
     * frequencies are divided by factor ("linear"). */
    double low_factor;
    double high_factor;
    uint32_t old_positions;
} tr_rope;

/* Every size is at least 1; `heads` is a multiple of `kv_heads`. */
typedef struct tr_config {
    tr_family family;
    uint32_t vocab_size;
    uint32_t hidden;       /* width of the residual stream */
    uint32_t layers;       /* at most TR_LAYERS_MAX */
    uint32_t heads;        /* of queries */
    uint32_t intermediate; /* width of the feed-forward network */
    uint32_t positions;    /* longest sequence, in tokens */
    tr_activation activation;
    double epsilon;        /* of norms */
    double deviation;      /* of initial weights; 0: 0.02 */
    double dropout;        /* rate, at least 0 and below 1; BERT only */
    uint32_t types;        /* token types; BERT only */

    /* The members below are used by pre-norm layers only. */
    uint32_t kv_heads;     /* of keys and values, each for heads / kv_heads
                            * heads of queries */
    uint32_t head_width;   /* even */
    bool tied;             /* the head's weight is the word embedding */
    bool qkv_bias;         /* Qwen2 */
    bool qk_norm;          /* Qwen3: an RMS norm of each query and key */
    tr_rope rope;
    tr_rope local_rope;    /* of layers with a window */
    /* Rows in a layer with a window attend to rows at a distance below it. */
    uint32_t window;
    bool windowed[TR_LAYERS_MAX];
} tr_config;

#endif /* TR_MODEL_CONFIG_H */
