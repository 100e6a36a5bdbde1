/*
 * activations.h - values that a forward pass keeps for its backward pass.
 *
 * A void * points to values (see ops.h).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_ACTIVATIONS_H
#define BERT_ACTIVATIONS_H

#include "model/family.h"

/* A layer's activations; sizes are per row unless stated otherwise. */
typedef struct bert_layer_kept {
    void *qkv;                /* 3 hidden */
    void *attend;             /* attention_kept() bytes for all rows */
    void *context;            /* hidden: output of attention */
    tr_norm_kept attention;   /* the norm after attention */
    void *middle;             /* hidden: output of the norm */
    void *up;                 /* intermediate: before GELU */
    void *gelu;               /* intermediate: after GELU */
    tr_norm_kept output;      /* the norm after the feed-forward network */
    void *out;                /* hidden */
} bert_layer_kept;

/* One row per masked token. */
typedef struct bert_mlm_kept {
    void *in;      /* hidden */
    void *dense;   /* hidden: before GELU */
    tr_norm_kept norm;
    void *out;     /* hidden: the norm's output */
    void *logits;  /* stride; replaced by their gradient */
    size_t stride; /* vocab_size, rounded up to TR_ROW_BYTES */
    void *scratch; /* hidden */
    double *loss;  /* 1 */
    int32_t *right; /* 1: see tr_outputs */
} bert_mlm_kept;

/* One row per sequence. */
typedef struct bert_nsp_kept {
    void *in;      /* hidden */
    void *pooled;  /* hidden */
    void *logits;  /* stride; replaced by their gradient */
    size_t stride; /* 2, rounded up */
    void *scratch; /* hidden */
    double *loss;  /* 1 */
} bert_nsp_kept;

/* Reused by every layer; sizes are per row. */
typedef struct bert_scratch {
    void *d_x;       /* hidden: gradient of the current layer's output */
    void *d_sum;     /* hidden */
    void *d_branch;  /* hidden */
    void *d_wide;    /* intermediate */
    void *d_qkv;     /* 3 hidden */
    void *attention; /* attention_scratch() bytes for all rows */
} bert_scratch;

typedef struct bert_activations {
    tr_norm_kept embedding_norm;
    void *embedded; /* n_rows x hidden */
    bert_layer_kept *layer;
    bert_mlm_kept mlm;
    bert_nsp_kept nsp;
    bert_scratch scratch;
} bert_activations;

/* Implement the functions of tr_family_ops. */
void *bert_activations_open(tr_device *device, const tr_config *config);
void bert_activations_free(tr_device *device, void *kept);
void bert_activations_lay_out(void *kept, tr_carve *carve, tr_device *device,
                              const tr_config *config, const tr_batch *batch,
                              const tr_step *step);

static inline bert_activations *bert_kept(const tr_pass *pass)
{
    return pass->kept;
}

#endif /* BERT_ACTIVATIONS_H */
