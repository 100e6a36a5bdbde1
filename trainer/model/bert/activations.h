/*
 * activations.h - values that a forward pass keeps for its backward pass.
 *
 * All arrays share one block of device memory, which grows to fit the largest
 * batch.  A void * points to values (see ops.h).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_ACTIVATIONS_H
#define BERT_ACTIVATIONS_H

#include "model/bert/config.h"
#include "model/ops.h"

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
    tr_device *device;
    tr_norm_kept embedding_norm;
    void *embedded; /* n_rows x hidden */
    bert_layer_kept *layer;
    bert_mlm_kept mlm;
    bert_nsp_kept nsp;
    bert_scratch scratch;

    unsigned char *block;
    size_t room;          /* size of the block, in bytes */
    size_t used;
    size_t scratch_start; /* start of scratch in the block, in bytes */
} bert_activations;

bool bert_activations_open(bert_activations *a, tr_device *device,
                           const bert_config *config);
void bert_activations_free(bert_activations *a);

/* Allocates room for an unstaged batch.  Returns false if out of memory. */
bool bert_activations_fit(bert_activations *a, const bert_config *config,
                          const tr_batch *batch, bool dense);

/*
 * Sets the whole block, or only its scratch part, to NaN, so that tests detect
 * reads of unwritten values.
 */
void bert_activations_poison(bert_activations *a, bool all);

#endif /* BERT_ACTIVATIONS_H */
