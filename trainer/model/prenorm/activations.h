/*
 * activations.h - values that a forward pass keeps for its backward pass.
 *
 * A void * points to values (see ops.h).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PRENORM_ACTIVATIONS_H
#define PRENORM_ACTIVATIONS_H

#include "model/family.h"

/* A layer's activations; sizes are per row unless stated otherwise. */
typedef struct pre_layer_kept {
    void *x; /* hidden: the residual stream before the layer */
    tr_norm_kept attention; /* the norm before attention */
    void *in;               /* hidden: its output */
    void *qkv;              /* (heads + 2 kv_heads) head_width */
    tr_norm_kept queries;   /* the norm of each head, in Qwen3... */
    tr_norm_kept keys;      /* ...and of each head of keys */
    void *attend;           /* attention_kept() bytes for all rows */
    void *context;          /* heads x head_width: output of attention */
    tr_norm_kept network;   /* the norm before the feed-forward network */
    void *middle;           /* hidden: its output */
    void *up;               /* 2 intermediate: before the gate */
    void *gated;            /* intermediate */
} pre_layer_kept;

/* One row per target, unless stated otherwise. */
typedef struct pre_head_kept {
    /* ModernBERT's, before the decoder. */
    void *in;     /* hidden: output of the final norm */
    void *dense;  /* hidden: before the activation... */
    void *active; /* hidden: ...and after it */
    tr_norm_kept norm;

    void *out;    /* hidden: the decoder's input, then its gradient */
    void *logits; /* [chunk] rows of `stride` values */
    size_t stride;
    size_t chunk;
    double *loss; /* 1 */
    int32_t *right; /* 1: see tr_outputs */
} pre_head_kept;

/* Reused by every layer; sizes are per row. */
typedef struct pre_scratch {
    void *d_x;       /* hidden: gradient of the residual stream */
    void *d_in;      /* hidden: gradient of a norm's output */
    void *d_context; /* heads x head_width */
    void *d_qkv;     /* (heads + 2 kv_heads) head_width */
    void *d_gated;   /* intermediate */
    void *d_up;      /* 2 intermediate */
    void *attention; /* attention_scratch() bytes for all rows */
} pre_scratch;

typedef struct pre_activations {
    real *frequency[2]; /* of rotary positions: in layers without and with a
                         * window */
    void *x;      /* n_rows x hidden: the residual stream in a layer */
    void *branch; /* n_rows x hidden: the output of a block */
    tr_norm_kept embedding;
    pre_layer_kept *layer;
    tr_norm_kept final;
    void *out; /* n_rows x hidden: output of the final norm */
    pre_head_kept head;
    pre_scratch scratch;
} pre_activations;

/* Implement the functions of tr_family_ops. */
void *pre_activations_open(tr_device *device, const tr_config *config);
void pre_activations_free(tr_device *device, void *kept);
void pre_activations_lay_out(void *kept, tr_carve *carve, tr_device *device,
                             const tr_config *config, const tr_batch *batch,
                             const tr_step *step);

static inline pre_activations *pre_kept(const tr_pass *pass)
{
    return pass->kept;
}

/* The attention of a layer, without the members that point to memory. */
tr_attend pre_attend(const tr_config *config, const tr_batch *batch,
                     uint32_t layer, bool dense);

#endif /* PRENORM_ACTIVATIONS_H */
